"""The queue of pending pods."""

import anyio
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from devlet.control.scheduler.queue import PodQueue, Wake
from devlet.objects.identifiers import PodUID

pytestmark = pytest.mark.anyio

A, B, C = PodUID("a"), PodUID("b"), PodUID("c")


async def test_pods_are_ordered_by_priority_then_arrival() -> None:
    queue = PodQueue()
    queue.put(A)
    queue.put(B, 10)
    queue.put(C)
    assert [await queue.pop() for _ in range(3)] == [B, A, C]


async def test_a_waiting_pod_is_ready_after_the_change_that_it_waits_for() -> None:
    queue = PodQueue()
    queue.put(A)
    queue.wait(await queue.pop(), Wake.DEVICES)
    queue.changed(Wake.CAPACITY)
    assert queue.ready == 0
    queue.changed(Wake.DEVICES)
    assert await queue.pop() == A


async def test_changes_during_an_attempt_are_not_missed() -> None:
    queue = PodQueue()
    queue.put(A)
    assert await queue.pop() == A
    queue.changed(Wake.NODES)
    queue.wait(A, Wake.NODES)
    assert await queue.pop() == A
    queue.changed(Wake.NODES)
    queue.wait(A, Wake.DEVICES)
    assert queue.ready == 0


async def test_a_pod_that_is_woken_keeps_its_position() -> None:
    queue = PodQueue()
    queue.put(A)
    queue.wait(await queue.pop(), Wake.DEVICES)
    queue.put(B)
    queue.changed(Wake.DEVICES)
    assert [await queue.pop(), await queue.pop()] == [A, B]


async def test_a_removed_pod_is_not_ready() -> None:
    queue = PodQueue()
    queue.put(A)
    queue.put(B)
    queue.remove(A)
    assert await queue.pop() == B
    queue.remove(B)
    queue.wait(B, Wake.ANYTHING)
    queue.changed(Wake.ANYTHING)
    assert len(queue) == 0 and queue.ready == 0


async def test_pop_waits_while_the_queue_is_empty() -> None:
    queue = PodQueue()
    async with anyio.create_task_group() as tasks:
        got: list[PodUID] = []

        async def take() -> None:
            got.append(await queue.pop())

        tasks.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        assert got == []
        queue.put(A)
    assert got == [A]


class Machine(RuleBasedStateMachine):
    """Each pod in the queue is either ready, waiting or being attempted."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = PodQueue()
        self.attempted: set[PodUID] = set()
        self.known: set[PodUID] = set()

    @rule(pod=st.sampled_from([A, B, C]), priority=st.integers(0, 2))
    def put(self, pod: PodUID, priority: int) -> None:
        self.queue.put(pod, priority)
        self.known.add(pod)
        self.attempted.discard(pod)

    @rule()
    def pop(self) -> None:
        if self.queue.ready:
            popped = anyio.run(self.queue.pop)
            assert popped in self.known and popped not in self.attempted
            self.attempted.add(popped)

    @rule(pod=st.sampled_from([A, B, C]), wake_on=st.sampled_from([Wake.ITSELF, Wake.CAPACITY, Wake.ANYTHING]))
    def wait(self, pod: PodUID, wake_on: Wake) -> None:
        if pod in self.attempted:
            self.queue.wait(pod, wake_on)
            self.attempted.discard(pod)

    @rule(what=st.sampled_from([Wake.CAPACITY, Wake.DEVICES]))
    def changed(self, what: Wake) -> None:
        self.queue.changed(what)

    @rule(pod=st.sampled_from([A, B, C]))
    def remove(self, pod: PodUID) -> None:
        self.queue.remove(pod)
        self.known.discard(pod)
        self.attempted.discard(pod)

    @invariant()
    def adds_up(self) -> None:
        assert len(self.queue) == len(self.known)
        assert self.queue.ready + len(self.queue.waiting) + len(self.attempted) == len(self.known)


TestQueue = Machine.TestCase


async def test_a_parked_pod_is_ready_after_a_change_of_itself() -> None:
    queue = PodQueue()
    queue.park(A)
    queue.put(B)
    queue.changed(Wake.ANYTHING)
    assert await queue.pop() == B
    queue.wake(A)
    assert await queue.pop() == A
