"""Which pods use which devices, and which claims hold them."""

from typing import TYPE_CHECKING

import pytest

from devlet.cluster.informer import Changed
from devlet.control.informers import Informers
from devlet.control.taints.device_taints import DeviceTaints
from devlet.control.taints.rule_status import Counts
from devlet.control.taints.usage import Holders, Usage
from devlet.objects.documents import view
from devlet.objects.identifiers import DeviceName, DriverName, PoolName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.taint_rule import DeviceTaintSelector

if TYPE_CHECKING:
    from tests.unit.control.taints.conftest import World


@pytest.mark.anyio
async def test_pods_are_found_by_the_devices_of_their_claims(world: "World") -> None:
    await world.user("p", "d0", "d1")
    await world.user("q", "d1")
    informers = Informers(world.store)
    usage = Usage(informers, workloads=False)
    async with informers.running():
        found = [pod.name for pod in usage.users(DeviceTaintSelector(device=DeviceName("d1")))]
        assert found == ["p", "q"]
        assert [pod.name for pod in usage.users_of(("default", "q"))] == ["q"]


@pytest.mark.spec("DA-7.5b")
@pytest.mark.anyio
async def test_a_dry_run_counts_what_no_execute_would_evict(world: "World") -> None:
    await world.publish()
    await world.user("p", "d0", "d1")
    await world.pod("stranger", "p")
    await world.rule(effect="None")
    await world.rule("nothing", effect="None", selector=None)
    informers = Informers(world.store)
    usage, taints = Usage(informers, workloads=False), DeviceTaints(informers)
    async with informers.running():
        rule, nothing = informers.rules.get("r"), informers.rules.get("nothing")
        assert rule is not None
        assert usage.dry_run(rule, taints) == Counts(namespaces=["default"], published=3, allocated=2)
        assert nothing is not None
        assert usage.dry_run(nothing, taints) == Counts()


# Holders


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


def test_a_deallocated_claim_is_no_longer_found(holders: Holders) -> None:
    holders.put(Changed(("ns", "a"), claim("g/p/0", "g/p/1"), ResourceClaim()))
    holders.put(Changed(("ns", "c"), claim("n/p/0", "g/p/1"), None))
    assert holders.of(select("g", "p", "1")) == []
    assert holders.of(select()) == [("ns", "b")]
