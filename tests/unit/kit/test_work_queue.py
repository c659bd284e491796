import logging
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.parts import running
from devlet.kit.work_queue import WorkQueue
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio
EXACT = Backoff(1.0, 8.0, jitter=0.0)


@dataclass
class Worker:
    """Works on a key until `finish`, if `holds`; fails as often as `fails` says."""

    clock: FakeClock = field(default_factory=FakeClock)
    holds: bool = False
    fails: Counter[str] = field(default_factory=Counter)
    error: Exception = field(default_factory=lambda: Unavailable("not now"))
    begun: list[tuple[float, str]] = field(default_factory=list)
    at_work: dict[str, anyio.Event] = field(default_factory=dict)
    told: list[tuple[str, Exception]] = field(default_factory=list)
    most: int = 0

    def queue(self, workers: int = 50) -> WorkQueue[str]:
        tell = lambda key, error: self.told.append((key, error))  # noqa: E731
        return WorkQueue(self.sync, self.clock, workers=workers, backoff=EXACT, failed=tell)

    async def sync(self, key: str) -> None:
        assert key not in self.at_work, "two tasks work on one key"
        self.begun.append((self.clock.monotonic(), key))
        self.at_work[key] = anyio.Event()
        self.most = max(self.most, len(self.at_work))
        try:
            if self.holds:
                await self.at_work[key].wait()
            if self.fails[key]:
                self.fails[key] -= 1
                raise self.error
        finally:
            del self.at_work[key]

    async def finish(self, *keys: str) -> None:
        for key in keys:
            self.at_work[key].set()
        await settled()

    @property
    def keys(self) -> list[str]:
        return [key for _, key in self.begun]

    @property
    def times(self) -> list[float]:
        return [time for time, _ in self.begun]


async def settled() -> None:
    for _ in range(20):
        await checkpoint()


async def test_a_key_that_is_added_often_before_its_turn_is_worked_on_once() -> None:
    worker = Worker()
    queue = worker.queue()
    for key in "aabab":
        queue.add(key)
    assert len(queue) == 2 and not queue.is_idle
    async with running(queue.run):
        await settled()
        assert worker.keys == ["a", "b"]
        assert queue.is_idle


async def test_a_key_added_while_it_is_worked_on_is_worked_on_once_again() -> None:
    worker = Worker(holds=True)
    queue = worker.queue()
    async with running(queue.run):
        queue.add("a")
        await settled()
        queue.add("a")
        queue.add("a")
        await settled()
        assert worker.keys == ["a"]
        await worker.finish("a")
        assert worker.keys == ["a", "a"]
        await worker.finish("a")
        assert queue.is_idle and worker.keys == ["a", "a"]


async def test_no_more_than_so_many_keys_are_worked_on_at_once_and_all_get_their_turn_in_order() -> None:
    worker = Worker(holds=True)
    queue = worker.queue(workers=2)
    async with running(queue.run):
        for key in "abcde":
            queue.add(key)
        await settled()
        assert worker.keys == ["a", "b"] and len(queue) == 3
        await worker.finish("a")
        assert worker.keys == ["a", "b", "c"]
        await worker.finish("b", "c")
        await worker.finish("d", "e")
    assert worker.keys == list("abcde") and worker.most == 2


async def test_a_failure_is_reported_and_retried_with_growing_delays() -> None:
    worker = Worker(fails=Counter(a=6))
    queue = worker.queue()
    async with running(queue.run):
        queue.add("a")
        await settled()
        await worker.clock.advance(60)
    assert worker.times == [0, 1, 3, 7, 15, 23, 31]
    assert worker.told == [("a", worker.error)] * 6


async def test_success_ends_the_series_of_failures() -> None:
    worker = Worker(fails=Counter(a=2))
    queue = worker.queue()
    async with running(queue.run):
        queue.add("a")
        await settled()
        await worker.clock.advance(10)
        worker.fails["a"] = 1
        queue.add("a")
        await settled()
        await worker.clock.advance(10)
    assert worker.times == [0, 1, 3, 10, 11]


async def test_a_failing_key_that_is_added_does_not_wait_for_its_next_try() -> None:
    worker = Worker(fails=Counter(a=1))
    queue = worker.queue()
    async with running(queue.run):
        queue.add("a")
        await settled()
        await worker.clock.advance(0.5)
        queue.add("a")
        await settled()
        assert worker.times == [0, 0.5]


async def test_a_forgotten_key_is_not_tried_again_and_starts_over() -> None:
    worker = Worker(fails=Counter(a=3))
    queue = worker.queue()
    async with running(queue.run):
        queue.add("a")
        await settled()
        await worker.clock.advance(1)
        queue.forget("a")
        await worker.clock.advance(100)
        assert worker.times == [0, 1]
        queue.add("a")
        await settled()
        await worker.clock.advance(1)
        assert worker.times == [0, 1, 101, 102]


async def test_an_error_without_a_meaning_is_logged_as_one_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(fails=Counter(a=1), error=ValueError("a bug"))
    queue = worker.queue()
    async with running(queue.run):
        queue.add("a")
        await settled()
        await worker.clock.advance(1)
    assert worker.times == [0, 1]
    assert [(r.levelno, r.message) for r in caplog.records] == [(logging.ERROR, "work failed unexpectedly")]
    assert worker.told == [("a", worker.error)]


async def test_without_anyone_to_tell_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(fails=Counter(a=1))
    queue = WorkQueue(worker.sync, worker.clock, backoff=EXACT)
    async with running(queue.run):
        queue.add("a")
        await settled()
    assert [(r.levelno, r.message) for r in caplog.records] == [(logging.WARNING, "work failed")]


async def test_what_is_added_for_later_has_its_turn_then() -> None:
    worker = Worker()
    queue = worker.queue()
    queue.add_after("c", 5)
    async with running(queue.run):
        queue.add_after("a", 3)
        queue.add_after("b", 1)
        queue.add_after("now", 0)
        await settled()
        assert worker.begun == [(0, "now")]
        await worker.clock.advance(10)
    assert worker.begun == [(0, "now"), (1, "b"), (3, "a"), (5, "c")]


async def test_of_several_wishes_for_later_the_soonest_counts_and_once() -> None:
    worker = Worker()
    queue = worker.queue()
    async with running(queue.run):
        for seconds in (4, 2, 6):
            queue.add_after("a", seconds)
        await settled()
        await worker.clock.advance(10)
        assert worker.times == [2]
        queue.add_after("a", 6)
        await settled()
        await worker.clock.advance(10)
    assert worker.times == [2, 16]


async def test_a_key_may_plan_its_own_next_turn() -> None:
    clock = FakeClock()
    times = []

    async def sync(key: str) -> None:
        times.append(clock.monotonic())
        queue.add_after(key, 10)

    queue = WorkQueue(sync, clock)
    async with running(queue.run):
        queue.add("a")
        await settled()
        await clock.advance(25)
    assert times == [0, 10, 20]


async def test_forgotten_plans_do_not_pile_up() -> None:
    queue = Worker().queue()
    for _ in range(10_000):
        queue.add_after("a", 3600)
        queue.forget("a")
    assert len(queue._heap) <= 1001


async def test_work_that_is_cancelled_is_worked_on_by_the_next_run() -> None:
    worker = Worker(holds=True)
    queue = worker.queue(workers=1)
    async with running(queue.run):
        queue.add("a")
        queue.add("b")
        await settled()
        queue.add("a")
    assert worker.keys == ["a"] and len(queue) == 2
    worker.holds = False
    async with running(queue.run):
        await settled()
    assert Counter(worker.keys) == {"a": 2, "b": 1} and queue.is_idle


async def test_a_worker_that_was_cancelled_before_its_first_step_loses_nothing() -> None:
    worker = Worker()
    queue = worker.queue()
    async with anyio.create_task_group() as tasks:
        await tasks.start(queue.run)
        queue.add("a")
        await checkpoint()
        tasks.cancel_scope.cancel()
    async with running(queue.run):
        await settled()
    assert worker.keys == ["a"] and queue.is_idle


async def test_work_that_never_waits_leaves_room_for_others() -> None:
    turns = []

    async def sync(key: int) -> None:
        turns.append(key)

    queue = WorkQueue(sync, FakeClock(), workers=1)
    async with running(queue.run):
        for key in range(1000):
            queue.add(key)
        for _ in range(100):
            await checkpoint()
        assert 0 < len(turns) < 1000


KEYS = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("add"), KEYS),
    st.tuples(st.just("later"), KEYS, st.integers(1, 5)),
    st.tuples(st.just("fail"), KEYS, st.integers(1, 3)),
    st.tuples(st.just("finish"), KEYS),
    st.tuples(st.just("advance"), st.integers(1, 4)),
    st.tuples(st.just("restart")),
)


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=30), st.integers(1, 3))
def test_every_wish_is_followed_by_a_turn_and_no_key_has_two_at_once(
    steps: list[tuple[object, ...]], most: int
) -> None:
    anyio.run(_random_walk, steps, most)


async def _random_walk(steps: list[tuple[object, ...]], most: int) -> None:
    worker = Worker(holds=True)
    queue = worker.queue(workers=most)
    wished: dict[str, int] = {}  # how many turns had begun when the last wish was made
    for part in _parts(steps):
        async with running(queue.run):
            for step in part:
                await _take(step, worker, queue, wished)
    worker.holds = False
    async with running(queue.run):
        await settled()
        await worker.clock.advance(100)
        assert queue.is_idle and not any(worker.fails[key] for key in wished)
    assert worker.most <= most
    for key, before in wished.items():
        assert key in worker.keys[before:], f"{key} was added and never worked on after that"


def _parts(steps: list[tuple[object, ...]]) -> list[list[tuple[object, ...]]]:
    parts: list[list[tuple[object, ...]]] = [[]]
    for step in steps:
        if step[0] == "restart":
            parts.append([])
        else:
            parts[-1].append(step)
    return parts


async def _take(step: tuple[object, ...], worker: Worker, queue: WorkQueue[str], wished: dict[str, int]) -> None:
    match step:
        case ("add", str(key)):
            queue.add(key)
            wished[key] = len(worker.begun)
        case ("later", str(key), int(seconds)):
            queue.add_after(key, seconds)
            wished[key] = len(worker.begun)
        case ("fail", str(key), int(times)):
            if key in wished:
                worker.fails[key] += times
                queue.add(key)
        case ("finish", str(key)):
            if key in worker.at_work:
                await worker.finish(key)
        case ("advance", int(seconds)):
            await worker.clock.advance(seconds)
    await settled()


def test_a_queue_can_be_made_outside_of_a_loop() -> None:
    worker = Worker()
    queue = worker.queue()
    queue.add("a")

    async def run() -> None:
        async with running(partial(queue.run)):
            await settled()

    anyio.run(run)
    assert worker.keys == ["a"]
