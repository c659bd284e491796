"""What is used up is told from what merely grows at first."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from devlet.sanity.check import CannotTell, Failed, Outcome, Passed, Warned
from devlet.sanity.checks import leaks
from devlet.sanity.checks.leaks import quiet_log, uses_up
from devlet.sanity.host import Usage

pytestmark = pytest.mark.anyio


class Process:
    """Uses what its lists say, each time that somebody looks."""

    def __init__(self, *used: Usage) -> None:
        self.used = list(used)
        self.done: list[int] = []
        self.logs = [0, 1_000_000]

    def usage(self) -> Usage:
        return self.used.pop(0)

    async def act(self, times: int) -> None:
        self.done.append(times)

    def log_bytes(self) -> int:
        return self.logs.pop(0)

    def need_driver(self) -> None: ...


def usage(files: int = 0, threads: int = 0, memory: int = 0) -> Usage:
    return Usage(files=files, threads=threads, memory=memory)


async def found(*used: Usage, memory: int | None = None) -> Outcome:
    process = Process(*used)
    outcome = await uses_up(cast(Any, process), process.act, 40, "calls", memory=memory)
    assert process.done == [1, 10, 40, 40, 40]
    return outcome


async def test_files_and_threads_that_stay_are_a_finding() -> None:
    more = [usage(number * 40) for number in range(4)]
    assert await found(*more) == Failed("the driver has 120 more open files after 120 calls")
    assert await found(*(usage(0, number * 40) for number in range(4))) == Failed(
        "the driver has 120 more threads after 120 calls"
    )
    assert await found(*(usage(number) for number in range(4))) == Passed()


async def test_memory_counts_if_it_grows_each_time() -> None:
    steady = [usage(memory=number * 40 * 8192) for number in range(4)]
    assert await found(*steady, memory=4096) == Warned("after 120 calls, each has left about 8 KiB of memory in use")
    assert await found(*steady) == Passed()
    leap = [usage(), usage(memory=1 << 30), usage(memory=1 << 30), usage(memory=2 << 30)]
    assert await found(*leap, memory=4096) == Passed()


async def test_what_is_slow_is_done_less_often_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [1.0]

    async def slow(call: Callable[[], Awaitable[None]]) -> float:
        await call()
        return seconds[0]

    monkeypatch.setattr(leaks, "duration", slow)
    process = Process(*(usage(number * 9, memory=number << 30) for number in range(4)))
    outcome = await uses_up(cast(Any, process), process.act, 100, "calls", memory=1)
    assert (process.done, outcome) == ([1, 2, 9, 9, 9], Failed("the driver has 27 more open files after 27 calls"))
    process = Process(*(usage(memory=number << 30) for number in range(4)))
    outcome = await uses_up(cast(Any, process), process.act, 100, "calls", memory=1)
    assert outcome == Passed("27 calls: too few to detect a memory leak, since each takes 1.00 s")
    seconds[0] = 12.0
    with pytest.raises(CannotTell, match=r"a call takes 12\.0 s"):
        await uses_up(cast(Any, process), process.act, 100, "calls")


async def test_a_log_that_grows_while_nothing_happens_is_a_finding() -> None:
    assert isinstance(await quiet_log(cast(Any, Process()), 0.001), Failed)
    process = Process()
    process.logs = [5, 5]
    assert await quiet_log(cast(Any, process), 0.001) == Passed()
