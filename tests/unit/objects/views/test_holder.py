from datetime import UTC, datetime
from typing import Any

from devlet.objects.views.holder import HOLDERS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = "2026-01-02T03:04:00Z"


def holder(*containers: tuple[str, str, list[str]]) -> dict[str, Any]:
    shown = [{"name": name, "devices": [{"resource": r, "ids": ids}]} for name, r, ids in containers]
    return {"metadata": {"name": "train"}, "status": {"since": SINCE, "containers": shown}}


def test_a_holder_shows_resources_devices_and_containers() -> None:
    document = holder(("init", "a.com/gpu", ["g0"]), ("main", "a.com/gpu", ["g0", "g1"]), ("net", "a.com/nic", ["n0"]))
    expected = ["train", "a.com/gpu,a.com/nic", "g0,g1,n0", "init,main,net", "5s"]
    assert HOLDERS.printer.cells(document, NOW) == expected


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
    cells = HOLDERS.printer.cells(document, NOW)
    assert cells[1] == "a.com/gpu,claim:extended,claim:gpu,claim:net"
    assert cells[2:4] == ["g0,d.com/n1/g0,d.com/n1/g1,d.com/n1/g2", "plugged,main"]


def test_many_devices_are_cut_short() -> None:
    cells = HOLDERS.printer.cells(holder(("main", "a.com/gpu", [f"g{i}" for i in range(100)])), NOW)
    assert cells[2] == "g0,g1,g2,g3,g4,g5,g6,g7 + 92 more..."
