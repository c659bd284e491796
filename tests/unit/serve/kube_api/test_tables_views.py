"""The rows of the node's views."""

from datetime import UTC, datetime
from typing import Any

from devlet.serve.kube_api.tables_views import DEVICES, DRIVERS, HOLDERS, PLUGINS, PREPARED_CLAIMS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = "2026-01-02T03:04:00Z"


def device(status: dict[str, Any], nodes: list[int] | None = None) -> dict[str, Any]:
    return {"spec": {"resource": "a.com/gpu", "id": "g0", "numaNodes": nodes or []}, "status": status}


def test_a_device_shows_its_holder() -> None:
    holder = {"namespace": "ns", "pod": "train", "podUID": "u", "container": "main"}
    status = {"health": "Healthy", "state": "Held", "holder": holder, "since": SINCE}
    expected = ["a.com/gpu", "g0", "Healthy", "0,1", "Held", "ns/train/main", "5s"]
    assert DEVICES.cells(device(status, [0, 1]), NOW) == expected
    assert [column.name for column in DEVICES.columns] == [
        *("Resource", "ID", "Health", "NUMA", "State", "Holder", "Since")
    ]


def test_a_free_device_has_no_holder_and_a_held_one_may_not_know_since_when() -> None:
    free = DEVICES.cells(device({"health": "Healthy", "state": "Free"}), NOW)
    assert free[3:] == ["<none>", "Free", "<none>", "<none>"]
    held = DEVICES.cells(device({"state": "Releasing", "holder": {"podUID": "u", "container": "main"}}), NOW)
    assert held[4:] == ["Releasing", "u/main", "<unknown>"]


def test_a_plugin_shows_its_process_in_wide_tables_only() -> None:
    options = {"preStartRequired": True, "getPreferredAllocationAvailable": True}
    spec = {"resource": "a.com/gpu", "socket": "/p/g.sock", "api": "v1beta1", "options": options}
    status = {"state": "Connected", "since": SINCE, "healthy": 2, "unhealthy": 1, "held": 1, "pid": 42}
    cells = PLUGINS.cells({"spec": spec, "status": status}, NOW)
    shown = [cell for cell, column in zip(cells, PLUGINS.columns, strict=True) if not column.priority]
    assert shown == ["a.com/gpu", "/p/g.sock", "v1beta1", "Connected", 2, 1, 1, "5s"]
    assert cells[8:] == ["42", "PreStart,PreferredAllocation", "<none>"]


def test_an_awaited_plugin_has_no_socket() -> None:
    cells = PLUGINS.cells({"spec": {"resource": "a.com/gpu"}, "status": {"state": "Awaited", "since": SINCE}}, NOW)
    assert cells[:4] == ["a.com/gpu", "<none>", "<none>", "Awaited"]


def holder(*containers: tuple[str, str, list[str]]) -> dict[str, Any]:
    shown = [{"name": name, "devices": [{"resource": r, "ids": ids}]} for name, r, ids in containers]
    return {"metadata": {"name": "train"}, "status": {"since": SINCE, "containers": shown}}


def test_a_holder_shows_resources_devices_and_containers() -> None:
    document = holder(("init", "a.com/gpu", ["g0"]), ("main", "a.com/gpu", ["g0", "g1"]), ("net", "a.com/nic", ["n0"]))
    expected = ["train", "a.com/gpu,a.com/nic", "g0,g1,n0", "init,main,net", "5s"]
    assert HOLDERS.cells(document, NOW) == expected


def test_a_holder_shows_its_claims_and_their_devices() -> None:
    device = {"driver": "d.com", "pool": "n1", "device": "g0"}
    claims = [
        {"name": "gpu", "claim": "c1", **device},
        {"name": "gpu", "claim": "c1", **device, "device": "g1"},
        {"name": "net", "claim": "c2", "driver": "late.com"},
        {"claim": "extended", **device, "device": "g2"},
    ]
    document = holder(("plugged", "a.com/gpu", ["g0"]))
    document["status"]["containers"].append({"name": "main", "claims": claims})
    cells = HOLDERS.cells(document, NOW)
    assert cells[1] == "a.com/gpu,claim:extended,claim:gpu,claim:net"
    assert cells[2:4] == ["g0,d.com/n1/g0,d.com/n1/g1,d.com/n1/g2", "plugged,main"]


def test_many_devices_are_cut_short() -> None:
    cells = HOLDERS.cells(holder(("main", "a.com/gpu", [f"g{i}" for i in range(100)])), NOW)
    assert cells[2] == "g0,g1,g2,g3,g4,g5,g6,g7 + 92 more..."


def test_a_driver_shows_its_endpoint_and_message_in_wide_tables_only() -> None:
    spec = {"driver": "a.com", "endpoint": "/p/dra.sock", "service": "v1", "healthService": "v1.DRAResourceHealth"}
    counts = {"slices": 1, "devices": 8, "claims": 0, "pods": 2}
    status = {"state": "Disconnected", "since": SINCE, "wipeAt": "2026-01-02T03:04:35Z", "message": "gone"} | counts
    cells = DRIVERS.cells({"metadata": {"name": "a.com"}, "spec": spec, "status": status}, NOW)
    shown = [cell for cell, column in zip(cells, DRIVERS.columns, strict=True) if not column.priority]
    assert shown == ["a.com", "Disconnected", "v1", "1", "8", "0", "2", "in 30s", "5s"]
    assert cells[9:] == ["/p/dra.sock", "v1.DRAResourceHealth", "gone"]


def test_a_driver_that_is_missing_has_little_to_show() -> None:
    cells = DRIVERS.cells({"metadata": {"name": "a.com"}, "status": {"state": "Missing", "claims": 1}}, NOW)
    assert cells[1:9] == ["Missing", "<none>", "<none>", "<none>", "1", "<none>", "<none>", "<unknown>"]


def test_slices_whose_time_is_over_are_wiped_now() -> None:
    assert DRIVERS.cells({"status": {"wipeAt": SINCE}}, NOW)[7] == "in 0s"


def test_a_prepared_claim_shows_devices_and_pods() -> None:
    devices = [{"pool": "n1", "device": f"gpu-{i}"} for i in range(10)]
    drivers = [{"driver": "a.com", "prepared": True, "devices": devices}, {"driver": "b.com", "prepared": False}]
    pods, waiting = [{"name": "train", "uid": "u1"}, {"uid": "u2"}], [{"pod": "web", "uid": "u3"}]
    status = {"state": "Failed", "since": SINCE, "message": "hot", "drivers": drivers, "pods": pods, "waiting": waiting}
    cells = PREPARED_CLAIMS.cells({"metadata": {"name": "c"}, "spec": {"uid": "u"}, "status": status}, NOW)
    some = ",".join(f"gpu-{i}" for i in range(8))
    expected = ["c", "Failed", "a.com,b.com", f"{some} + 2 more...", "train,u2", "web", "5s", "u", "hot"]
    assert cells == expected
    assert len(PREPARED_CLAIMS.columns) == len(cells)


def test_a_contested_device_shows_the_claim_that_has_it_and_those_that_want_it() -> None:
    status = {"state": "Contested", "since": SINCE, "claims": ["ns/a"], "waiting": ["ns/b", "ns/c"]}
    spec = {"driver": "gpu.example.com", "pool": "n1", "id": "gpu-0"}
    assert DEVICES.cells({"spec": spec, "status": status}, NOW) == [
        *("gpu.example.com/n1", "gpu-0", "<none>", "<none>", "Contested"),
        *("claim ns/a (wanted by ns/b,ns/c)", "5s"),
    ]
