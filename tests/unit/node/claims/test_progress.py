import pytest

from devlet.node.claims.progress import Progress
from devlet.node.claims.records import ClaimState, Contested
from devlet.objects.identifiers import PodUID
from devlet.state.claim_entry import ClaimEntry
from devlet.testing.fake_clock import FakeClock
from tests.support.claim_specimens import GPU, device, key

pytestmark = pytest.mark.anyio

ENTRY = ClaimEntry("u", "c", "default", frozenset({"b", "a"}), {GPU: (device("d"),)})


async def test_a_state_has_the_time_at_which_it_began() -> None:
    clock = FakeClock()
    progress = Progress(clock)
    began = clock.now()
    progress.note(key("c"), ClaimState.FAILED, "one")
    await clock.advance(5)
    progress.note(key("c"), ClaimState.FAILED, "two")
    found = progress.record(key("c"), ENTRY)
    assert (found.state, found.since, found.message, found.pods) == (ClaimState.FAILED, began, "two", ("a", "b"))
    progress.note(key("c"), ClaimState.PREPARED)
    assert progress.record(key("c"), ENTRY).since == clock.now()


async def test_without_a_recorded_state_the_entry_decides() -> None:
    progress = Progress(FakeClock())
    progress.note(key("c"), ClaimState.FAILED, "x")
    progress.forget(key("c"))
    found = progress.record(key("c"), ENTRY)
    assert (found.state, found.since, found.message) == (ClaimState.PREPARED, None, "")
    half = ClaimEntry("u", "c", "default", None, {GPU: None})
    assert progress.record(key("c"), half).state is ClaimState.PREPARING


async def test_a_wait_begins_with_the_first_failure() -> None:
    clock = FakeClock()
    progress = Progress(clock)
    began = clock.now()
    progress.waits_for(PodUID("a"), [key("c")], "one")
    await clock.advance(5)
    progress.waits_for(PodUID("b"), [], "other")
    progress.waits_for(PodUID("a"), [key("c")], "two")
    assert [(w.pod, w.since, w.message) for w in progress.waits()] == [("a", began, "two"), ("b", clock.now(), "other")]
    progress.forget_pod(PodUID("a"))
    assert [w.pod for w in progress.waits()] == ["b"]


async def test_a_pod_names_the_devices_that_other_claims_have() -> None:
    progress = Progress(FakeClock())
    progress.waits_for(PodUID("a"), [key("c")], "one", contested=[("default/c", "d/p/x", "default/other")])
    [wait] = progress.waits()
    assert wait.contested == (Contested("d/p/x", "default/other", "default/c"),)
    assert wait.holders == {"default/other"}
