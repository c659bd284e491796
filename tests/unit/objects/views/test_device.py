from datetime import UTC, datetime
from typing import Any

from devlet.objects.views.device import DEVICES

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = "2026-01-02T03:04:00Z"


def device(status: dict[str, Any], nodes: list[int] | None = None) -> dict[str, Any]:
    return {"spec": {"resource": "a.com/gpu", "id": "g0", "numaNodes": nodes or []}, "status": status}


def test_a_device_shows_its_holder() -> None:
    holder = {"namespace": "ns", "pod": "train", "podUID": "u", "container": "main"}
    status = {"health": "Healthy", "state": "Held", "holder": holder, "since": SINCE}
    expected = ["a.com/gpu", "g0", "Healthy", "0,1", "Held", "ns/train/main", "5s"]
    assert DEVICES.printer.cells(device(status, [0, 1]), NOW) == expected
    assert [column.name for column in DEVICES.printer.columns] == [
        *("Resource", "ID", "Health", "NUMA", "State", "Holder", "Since")
    ]


def test_a_free_device_has_no_holder_and_a_held_one_may_not_know_since_when() -> None:
    free = DEVICES.printer.cells(device({"health": "Healthy", "state": "Free"}), NOW)
    assert free[3:] == ["<none>", "Free", "<none>", "<none>"]
    held = DEVICES.printer.cells(device({"state": "Releasing", "holder": {"podUID": "u", "container": "main"}}), NOW)
    assert held[4:] == ["Releasing", "u/main", "<unknown>"]


def test_a_contested_device_shows_the_claim_that_has_it_and_those_that_want_it() -> None:
    status = {"state": "Contested", "since": SINCE, "claims": ["ns/a"], "waiting": ["ns/b", "ns/c"]}
    spec = {"driver": "gpu.example.com", "pool": "n1", "id": "gpu-0"}
    assert DEVICES.printer.cells({"spec": spec, "status": status}, NOW) == [
        *("gpu.example.com/n1", "gpu-0", "<none>", "<none>", "Contested"),
        *("claim ns/a (wanted by ns/b,ns/c)", "5s"),
    ]
