"""Kills programs at moments that the dice choose, and starts them again a while later; says what it did and when.

    killer = Killer({"devlet": Victim(node.kill, node.start)}, Dice(7), timeline)
    await killer.run(30.0)  # whatever it has killed runs again when this returns

Which programs and how long is decided by the dice alone, but where in their work they are hit is not.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from devlet.errors import DevletError
from devlet.kit.dice import Dice

__all__ = ["Killer", "Pace", "Timeline", "Victim"]

AGAIN = 0.5  # seconds until a program that did not start is tried again


@dataclass(frozen=True, slots=True)
class Victim:
    """`kill` is with SIGKILL; `start` until it is ready. A DevletError says that it did not start this time,
    as one that needs another which is dead."""

    kill: Callable[[], Awaitable[None]]
    start: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Pace:
    """Tenths of seconds, least and most."""

    calm: tuple[int, int] = (5, 40)  # between two attacks
    away: tuple[int, int] = (0, 25)  # until a victim is started again
    start: float = 60.0  # seconds for a victim to be back


@dataclass(slots=True)
class Timeline:
    """What was done, with seconds since the beginning."""

    lines: list[str] = field(default_factory=list)
    _began: float = field(default_factory=anyio.current_time)

    def add(self, text: str) -> None:
        self.lines.append(f"{anyio.current_time() - self._began:7.2f} s  {text}")


class Killer:
    def __init__(
        self, victims: Mapping[str, Victim], dice: Dice, timeline: Timeline, pace: Pace = Pace(), *, most: int = 10_000
    ) -> None:
        """`most` is how many kills there are at most."""
        self._victims = victims
        self._dice = dice
        self._timeline = timeline
        self._pace = pace
        self._left = most
        self._alive = set(victims)
        self.kills = 0

    async def run(self, seconds: float) -> None:
        """Attack for so long. AssertionError if a victim does not come back."""
        end = anyio.current_time() + seconds
        async with anyio.create_task_group() as tasks:
            while self._left > 0 and anyio.current_time() < end:
                await anyio.sleep_until(min(anyio.current_time() + self._draw(self._pace.calm), end))
                if anyio.current_time() < end:
                    self._attack(tasks)
            await anyio.sleep_until(end)

    def _attack(self, tasks: TaskGroup) -> None:
        """Mostly one, sometimes several at once; who is away is left alone."""
        count = 1 if self._dice.chance(0.7) else self._dice.number(2, 3)
        names = self._dice.some(sorted(self._alive), count, count)[: self._left]
        self._left -= len(names)
        self._alive -= set(names)
        for name in names:
            tasks.start_soon(self._hit, name, self._draw(self._pace.away))

    async def _hit(self, name: str, away: float) -> None:
        self._timeline.add(f"kill {name}")
        await self._victims[name].kill()
        self.kills += 1
        await anyio.sleep(away)
        with anyio.move_on_after(self._pace.start):
            await self._start(name)
            self._alive.add(name)
            return
        raise AssertionError("\n".join([f"{name} did not come back", *self._timeline.lines]))

    async def _start(self, name: str) -> None:
        while True:
            try:
                await self._victims[name].start()
            except DevletError as e:
                self._timeline.add(f"{name} did not start: {str(e).splitlines()[0]}")
                await anyio.sleep(AGAIN)
            else:
                self._timeline.add(f"{name} is back")
                return

    def _draw(self, tenths: tuple[int, int]) -> float:
        return self._dice.number(*tenths) / 10
