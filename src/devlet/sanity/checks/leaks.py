"""What a driver uses up, little by little: files, threads, memory, and the disk."""

from collections.abc import Awaitable, Callable
from itertools import pairwise

import anyio

from devlet.sanity.check import CannotTell, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.moments import duration
from devlet.sanity.rig import Rig

__all__ = ["quiet_log", "uses_up"]

_LOG = 256 << 10  # bytes in a second
_ROUNDS = 3
_BUDGET = 30.0  # seconds, for all rounds of a slow driver
_LEAST = 3  # times in a round


async def uses_up(
    rig: Rig, act: Callable[[int], Awaitable[None]], times: int, what: str, *, memory: int | None = None
) -> Outcome:
    """Do it so many times, three times over, after it has been done a while. A leak of memory, of more than so many
    bytes each, is one that is there in each of the three: a heap grows by leaps. If there is only time for a few, the
    memory is not looked at, and the outcome says so."""
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
            return Failed(f"{more} more {thing} after {done} {what}")
    growth = min(after.memory - before.memory for before, after in pairwise(used)) // times
    if memory is not None and is_slow:
        return Passed(f"{done} {what}: too few to tell whether memory is lost, since one takes {took:.2f} s")
    if memory is not None and growth > memory:
        return Warned(f"{done} {what}: each left about {growth // 1024} KiB of memory in use")
    return Passed()


def _afforded(times: int, took: float) -> int:
    """CannotTell if it is too slow to be done often enough."""
    afforded = min(times, int(_BUDGET / (_ROUNDS + 0.25) / max(took, 1e-6)))
    if afforded < _LEAST:
        raise CannotTell(f"one takes {took:.1f} s, which is too long for many")
    return afforded


async def quiet_log(rig: Rig, quiet: float) -> Outcome:
    before = rig.log_bytes()
    await anyio.sleep(quiet)
    rate = (rig.log_bytes() - before) / quiet
    if rate > _LOG:
        return Failed(f"it writes {rate / 1e6:.1f} MB of log in a second, while nothing happens")
    rig.need_driver()
    return Passed()
