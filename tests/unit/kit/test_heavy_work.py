"""Computations beside the loop: in order, a few at a time, one per owner."""

import threading
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from devlet.errors import TooManyRequests
from devlet.kit.heavy_work import HeavyWork
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio


class Job:
    """A computation that lasts until it is released."""

    def __init__(self, name: str, began: list[str]) -> None:
        self.name = name
        self._began = began
        self._released = threading.Event()

    def __call__(self) -> str:
        self._began.append(self.name)
        self._released.wait()
        return self.name

    def release(self) -> None:
        self._released.set()


async def began(seen: list[str], *names: str) -> None:
    async def read() -> list[str]:
        return [*seen]

    await until(read, lambda names_: sorted(names_) == sorted(names))


async def test_the_result_and_the_error_of_a_computation_reach_the_caller() -> None:
    work = HeavyWork()
    assert await work.run("a", lambda: 1 + 1) == 2
    with pytest.raises(ZeroDivisionError):
        await work.run("a", lambda: 1 // 0)
    assert await work.run("a", threading.get_ident) != threading.get_ident()


async def test_one_owner_takes_one_place_and_the_others_get_theirs() -> None:
    seen: list[str] = []
    jobs = {name: Job(name, seen) for name in ("a1", "a2", "b1", "c1")}
    work = HeavyWork(at_once=2)
    with deadline():
        async with anyio.create_task_group() as tasks:
            for name, job in jobs.items():
                tasks.start_soon(work.run, name[0], job)
                await anyio.lowlevel.checkpoint()
            await began(seen, "a1", "b1")  # not a2, although it came before b1
            jobs["b1"].release()
            await began(seen, "a1", "b1", "c1")
            for job in jobs.values():
                job.release()
    assert sorted(seen) == ["a1", "a2", "b1", "c1"]


async def test_the_loop_runs_while_a_thread_computes() -> None:
    job = Job("a", [])
    with deadline():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(HeavyWork().run, "a", job)
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            job.release()


async def test_more_than_so_many_waiting_computations_of_one_owner_are_refused() -> None:
    seen: list[str] = []
    job = Job("a", seen)
    work = HeavyWork(max_waiting=2)
    with deadline():
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(work.run, "a", job)
                await anyio.lowlevel.checkpoint()
            with pytest.raises(TooManyRequests, match="2 large requests of a are waiting already"):
                await work.run("a", job)
            assert await work.run("b", lambda: "b") == "b"
            job.release()
    assert await work.run("a", lambda: "a") == "a"


async def test_a_caller_that_is_cancelled_gives_its_place_back_when_the_computation_has_ended() -> None:
    seen: list[str] = []
    job = Job("a", seen)
    work = HeavyWork(at_once=1)
    ended: Callable[[], None] = job.release
    with deadline():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work.run, "a", job)
            await began(seen, "a")
            tasks.cancel_scope.cancel()
            ended()
        assert await work.run("b", lambda: "b") == "b"
