import pytest

from devlet.node.claims.tombstones import Settings, Tombstones
from devlet.objects.identifiers import DeviceIdentity, DeviceName, PodUID, PoolName
from devlet.state.claim_entry import ClaimEntry
from devlet.testing.fake_clock import FakeClock
from tests.support.claim_specimens import GPU, device, key

pytestmark = pytest.mark.anyio

A, B = PodUID("a"), PodUID("b")
ENTRY = ClaimEntry("u", "c", "default", frozenset({"a"}), {GPU: (device("d"),)})
DEVICE = DeviceIdentity(GPU, PoolName("pool"), DeviceName("d"))


@pytest.mark.spec("DN-11.23")
async def test_the_claims_of_a_pod_are_kept_for_a_limited_time() -> None:
    clock = FakeClock()
    stones = Tombstones(clock, Settings(keep=60))
    stones.add(A, {key("c"): ENTRY})
    assert stones.get(A, key("c")) == ENTRY and stones.users([DEVICE]) == {A}
    assert stones.get(B, key("c")) is None and stones.get(A, key("other")) is None
    await clock.advance(61)
    assert stones.get(A, key("c")) is None and stones.users([DEVICE]) == frozenset()


async def test_claims_that_are_unprepared_later_are_added() -> None:
    stones = Tombstones(FakeClock())
    stones.add(A, {key("c"): ENTRY})
    stones.add(A, {key("other"): ENTRY})
    assert stones.get(A, key("c")) == ENTRY and stones.get(A, key("other")) == ENTRY


async def test_the_number_of_pods_is_limited() -> None:
    stones = Tombstones(FakeClock(), Settings(most=2))
    for name in "abc":
        stones.add(PodUID(name), {key("c"): ENTRY})
    assert stones.users([DEVICE]) == {PodUID("b"), PodUID("c")}
