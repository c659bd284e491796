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
async def test_what_a_pod_had_is_known_for_a_while() -> None:
    clock = FakeClock()
    stones = Tombstones(clock, Settings(keep=60))
    stones.add(A, {key("c"): ENTRY})
    assert stones.get(A, key("c")) == ENTRY and stones.users([DEVICE]) == {A}
    assert stones.get(B, key("c")) is None and stones.get(A, key("other")) is None
    await clock.advance(61)
    assert stones.get(A, key("c")) is None and stones.users([DEVICE]) == frozenset()


async def test_what_is_unprepared_later_comes_to_what_was_unprepared_before() -> None:
    stones = Tombstones(FakeClock())
    stones.add(A, {key("c"): ENTRY})
    stones.add(A, {key("other"): ENTRY})
    assert stones.get(A, key("c")) == ENTRY and stones.get(A, key("other")) == ENTRY


async def test_there_is_a_limit_on_pods() -> None:
    stones = Tombstones(FakeClock(), Settings(most=2))
    for name in "abc":
        stones.add(PodUID(name), {key("c"): ENTRY})
    assert stones.users([DEVICE]) == {PodUID("b"), PodUID("c")}
