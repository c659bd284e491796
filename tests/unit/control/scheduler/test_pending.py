"""The records of pending pods, and the reports that are due."""

import pytest

from devlet.control.scheduler.decision import Refusal
from devlet.control.scheduler.pending import PendingPod, PendingPods
from devlet.control.scheduler.queue import Wake
from devlet.control.scheduler.settings import ReportTimes
from devlet.objects.identifiers import PodUID
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

A, B = PodUID("a"), PodUID("b")
TIMES = ReportTimes(transient=2.0, again=5.0, refresh=3.0)


def a_pod(uid: PodUID) -> Pod:
    return Pod(metadata=ObjectMeta(name=uid, uid=uid))


async def attempted(pending: PendingPods, uid: PodUID) -> PendingPod:
    """Add a pod whose attempt has begun."""
    record = pending.add(a_pod(uid))
    pending.queue.put(uid)
    assert await pending.queue.pop() == uid
    return record


async def test_a_refused_pod_is_retried_after_the_change_that_it_waits_for() -> None:
    pending = PendingPods(FakeClock(), TIMES)
    record = await attempted(pending, A)
    record.failures = 3
    pending.put_off(record, Refusal(Wake.NODES, "no"))
    assert pending.is_waiting(record) and not record.failures
    pending.queue.changed(Wake.DEVICES)
    assert pending.is_waiting(record)
    pending.queue.changed(Wake.NODES)
    assert await pending.queue.pop() == A


async def test_changes_of_its_claims_do_not_wake_a_pod_that_backs_off_or_is_being_bound() -> None:
    pending = PendingPods(FakeClock(), TIMES)
    record = await attempted(pending, A)
    record.is_backing_off = True
    pending.queue.wait(A, Wake.ITSELF)
    pending.wake(A)
    assert not pending.queue.ready
    pending.end_back_off(record)
    assert await pending.queue.pop() == A
    pending.start_binding(record)
    pending.wake(A)
    assert not pending.queue.ready


async def test_the_end_of_a_back_off_does_not_wake_a_later_record_of_the_pod() -> None:
    pending = PendingPods(FakeClock(), TIMES)
    record = await attempted(pending, A)
    pending.forget(A)
    await attempted(pending, A)
    pending.queue.wait(A, Wake.ITSELF)
    pending.end_back_off(record)
    assert not pending.queue.ready


async def test_the_record_of_a_pod_that_is_deleted_while_it_is_being_bound_stays_until_the_binding_ends() -> None:
    pending = PendingPods(FakeClock(), TIMES)
    record = await attempted(pending, A)
    pending.start_binding(record)
    pending.forget(A)
    assert pending.get(A) is None and pending.binding(A) is record and record.is_gone
    record.is_binding = False
    pending.forget(A)
    assert pending.binding(A) is None and A not in pending.queue


async def test_a_record_that_was_forgotten_during_its_attempt_does_not_wait_for_other_pods() -> None:
    pending = PendingPods(FakeClock(), TIMES)
    forgotten = await attempted(pending, A)
    pending.forget(A)
    pending.await_others(forgotten)
    await attempted(pending, A)
    pending.queue.wait(A, Wake.ITSELF)
    pending.pods_changed()
    assert not pending.queue.ready


async def test_a_placed_pod_wakes_those_with_pod_affinity() -> None:
    pending = PendingPods(FakeClock(), TIMES)
    near, other = await attempted(pending, A), await attempted(pending, B)
    pending.await_others(near)
    for record in (near, other):
        pending.put_off(record, Refusal(Wake.ITSELF))
    pending.pods_changed()
    assert (pending.queue.ready, pending.arrivals) == (1, 1)
    assert await pending.queue.pop() == A


async def test_a_transient_refusal_is_reported_only_if_it_lasts() -> None:
    clock = FakeClock()
    pending = PendingPods(clock, TIMES)
    first, second = await attempted(pending, A), await attempted(pending, B)
    pending.put_off(first, Refusal(Wake.ITSELF, "soon", transient=True))
    pending.put_off(second, Refusal(Wake.ITSELF, "no"))
    assert pending.next_report() is second and pending.next_report() is None
    await clock.advance(2)
    assert pending.next_report() is first


async def test_a_reported_pod_is_not_reported_again_at_once() -> None:
    clock = FakeClock()
    pending = PendingPods(clock, TIMES)
    record = await attempted(pending, A)
    record.reported = "no"
    pending.put_off(record, Refusal(Wake.ITSELF, "still no"))
    pending.put_off(record, Refusal(Wake.ITSELF, "still no"))  # asks for no second report
    assert pending.next_report() is None
    await clock.advance(5)
    assert pending.next_report() is record and pending.next_report() is None


async def test_all_waiting_pods_are_reported_after_capacity_was_taken() -> None:
    clock = FakeClock()
    pending = PendingPods(clock, TIMES)
    record = await attempted(pending, A)
    pending.put_off(record, Refusal(Wake.ITSELF, "no"))
    assert pending.next_report() is record
    pending.capacity_taken()
    pending.capacity_taken()
    assert pending.losses == 2 and pending.next_report() is None
    await clock.advance(3)
    assert pending.next_report() is record and pending.next_report() is None
