from datetime import UTC, datetime
from typing import Any

from devlet.cli.views.claim_row import COLUMNS, LONGEST, cells

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def row(claim: dict[str, Any] | None, prepared: dict[str, Any] | None = None, *, wide: bool = False) -> dict[str, str]:
    found = cells(claim, prepared, {"a": "Connected"}, now=NOW, on_node=True, wide=wide)
    return dict(zip([column.name for column in COLUMNS], found, strict=True))


def claim(*devices: str, users: int = 0) -> dict[str, Any]:
    results = [dict(zip(("driver", "pool", "device"), device.split("/"), strict=True)) for device in devices]
    reserved = [{"resource": "pods", "name": f"p{i}", "uid": f"u{i}"} for i in range(users)]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return {"metadata": {"name": "c", "creationTimestamp": "2026-01-02T03:04:00Z"}, "status": status}


def test_devices_of_one_pool_name_it_once() -> None:
    found = claim("b/n/d10", "a/n/d10", "a/n/d2", "a/n/d2")
    assert row(found)["Devices"] == "a/n/d2,d10,b/n/d10"
    assert row(found, wide=True)["Devices"] == "b/n/d10,a/n/d10,a/n/d2"


def test_many_devices_and_consumers_are_counted() -> None:
    found = claim(*(f"a/n/d{i}" for i in range(9)), users=5)
    assert row(found)["Devices"] == "a/n/d0,d1,d2 + 6 more..."
    assert row(found)["Consumers"] == "p0,p1,p2 + 2 more..."
    assert row(found, wide=True)["Consumers"] == "p0,p1,p2,p3,p4"


def test_a_long_message_is_cut_short_unless_all_is_wanted() -> None:
    message = "driver a: " + "x" * 100
    failed = {"spec": {"uid": "u"}, "status": {"state": "Failed", "message": message}}
    short = row(claim("a/n/d", users=1), failed)["Awaits"]
    assert (len(short), short[-3:]) == (LONGEST, "...")
    assert row(claim("a/n/d", users=1), failed, wide=True)["Awaits"] == message


def test_since_is_for_what_is_awaited_or_prepared() -> None:
    assert row(claim("a/n/d"))["Since"] == "<none>"
    assert row(claim("a/n/d"))["Age"] == "5s"
    prepared = {"spec": {"uid": "u"}, "status": {"state": "Prepared", "since": "2026-01-02T03:04:03Z"}}
    assert row(claim("a/n/d"), prepared)["Since"] == "2s"


def test_what_only_the_node_knows_has_a_state_of_its_own() -> None:
    assert row(None, {"metadata": {"name": "c"}, "spec": {"uid": "u"}, "status": {}})["State"] == "gone"
    assert row(None, {"metadata": {"name": "c"}, "status": {"state": "Waiting"}})["State"] == "missing"
