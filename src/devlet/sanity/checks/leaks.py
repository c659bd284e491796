"""Leaks of open files, threads, memory and disk space."""

from collections.abc import Awaitable, Callable
from itertools import pairwise

import anyio

from devlet.sanity.check import CannotTell, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.moments import duration
from devlet.sanity.rig import Rig

__all__ = ["quiet_log", "uses_up"]

_LOG = 256 << 10  # bytes per second
_ROUNDS = 3
_BUDGET = 30.0  # seconds, for all rounds of a slow driver
_LEAST = 3  # times in a round


async def uses_up(
    rig: Rig, act: Callable[[int], Awaitable[None]], times: int, what: str, *, memory: int | None = None
) -> Outcome:
    """Run `act` so many times in each of three rounds, after a warm-up, and compare what the process uses.

    Memory counts as leaked if it grows by more than `memory` bytes per call in every round, because heaps grow in
    steps. If there is time for only a few calls, memory is not compared, and the outcome says so."""
    took = await duration(lambda: act(1))
    afforded = _afforded(times, took)
    is_slow, times = afforded < times, afforded
    await act(times // 4)
    used = [rig.usage()]
    for _ in range(_ROUNDS):
        await act(times)
        used.append(rig.usage())
    first, last, done = used[0], used[-1], _ROUNDS * times
    for thing, more in (("open files", last.files - first.files), ("threads", last.threads - first.threads)):
        if more > done // 2:
            return Failed(f"the driver has {more} more {thing} after {done} {what}")
    growth = min(after.memory - before.memory for before, after in pairwise(used)) // times
    if memory is not None and is_slow:
        return Passed(f"{done} {what}: too few to detect a memory leak, since each takes {took:.2f} s")
    if memory is not None and growth > memory:
        return Warned(f"after {done} {what}, each has left about {growth // 1024} KiB of memory in use")
    return Passed()


def _afforded(times: int, took: float) -> int:
    """Return how often the call can be made in time. Raises CannotTell if that is not often enough."""
    afforded = min(times, int(_BUDGET / (_ROUNDS + 0.25) / max(took, 1e-6)))
    if afforded < _LEAST:
        raise CannotTell(f"a call takes {took:.1f} s, which is too long to repeat it often")
    return afforded


async def quiet_log(rig: Rig, quiet: float) -> Outcome:
    before = rig.log_bytes()
    await anyio.sleep(quiet)
    rate = (rig.log_bytes() - before) / quiet
    if rate > _LOG:
        return Failed(f"the driver writes {rate / 1e6:.1f} MB of log per second while nothing happens")
    rig.need_driver()
    return Passed()
