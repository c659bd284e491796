"""Which claims hold which devices."""

import pytest

from devlet.cluster.informer import Changed
from devlet.control.taints.holders import Holders
from devlet.objects.documents import view
from devlet.objects.identifiers import DeviceName, DriverName, PoolName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.taint_rule import DeviceTaintSelector


def claim(*devices: str) -> ResourceClaim:
    places = [device.split("/") for device in devices]
    results = [{"driver": driver, "pool": pool, "device": device} for driver, pool, device in places]
    return view(ResourceClaim, {"status": {"allocation": {"devices": {"results": results}}}})


def select(driver: str | None = None, pool: str | None = None, device: str | None = None) -> DeviceTaintSelector:
    return DeviceTaintSelector(
        driver=DriverName(driver) if driver else None,
        pool=PoolName(pool) if pool else None,
        device=DeviceName(device) if device else None,
    )


@pytest.fixture
def holders() -> Holders:
    holders = Holders()
    for name, devices in {"a": ("g/p/0", "g/p/1"), "b": ("g/q/0",), "c": ("n/p/0", "g/p/1")}.items():
        holders.put(Changed(("ns", name), None, claim(*devices)))
    return holders


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        (select("g", "p", "1"), "ac"),
        (select("g", "p", "7"), ""),
        (select("g"), "abc"),
        (select(pool="q"), "b"),
        (select("n"), "c"),
        (select(device="0"), "abc"),
        (select(), "abc"),
    ],
)
def test_claims_are_found_once_by_their_devices(holders: Holders, selector: DeviceTaintSelector, names: str) -> None:
    assert holders.of(selector) == [("ns", name) for name in names]


def test_a_claim_that_loses_its_devices_is_not_found_any_more(holders: Holders) -> None:
    holders.put(Changed(("ns", "a"), claim("g/p/0", "g/p/1"), ResourceClaim()))
    holders.put(Changed(("ns", "c"), claim("n/p/0", "g/p/1"), None))
    assert holders.of(select("g", "p", "1")) == []
    assert holders.of(select()) == [("ns", "b")]
