import pytest

from devlet.cluster.store.claims import drop_released_devices
from devlet.objects.documents import Document


def claim(*allocated: str, reported: tuple[str, ...]) -> Document:
    results = [{"request": "r", "driver": "d", "pool": "p", "device": name} for name in allocated]
    devices = [{"driver": "d", "pool": "p", "device": name} for name in reported]
    return {"status": {"allocation": {"devices": {"results": results}}, "devices": devices}}


@pytest.mark.parametrize(("allocated", "left"), [(("a", "b"), ["a", "b"]), (("a",), ["a"]), ((), None)])
def test_reports_on_released_devices_are_removed(allocated: tuple[str, ...], left: list[str] | None) -> None:
    new = claim(*allocated, reported=("a", "b"))
    drop_released_devices(new, claim("a", "b", reported=("a", "b")))
    devices = new["status"].get("devices")
    assert (devices and [device["device"] for device in devices]) == left


def test_reports_on_devices_that_were_never_allocated_stay() -> None:
    new = claim(reported=("a",))
    drop_released_devices(new, {})
    assert new == claim(reported=("a",))
