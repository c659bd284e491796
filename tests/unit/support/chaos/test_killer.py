import pytest
from anyio.lowlevel import checkpoint

from devlet.errors import Unavailable
from devlet.kit.dice import Dice
from tests.support.chaos.killer import Killer, Pace, Timeline, Victim

pytestmark = pytest.mark.anyio

QUICK = Pace(calm=(0, 0), away=(0, 0), start=0.2)
WHOLE_RUN = 1.0  # seconds


class Program:
    """One that notes what is done to it. It does not start as often as it `fails`."""

    def __init__(self, fails: int = 0) -> None:
        self.fails = fails
        self.calls: list[str] = []

    async def kill(self) -> None:
        self.calls.append("kill")
        await checkpoint()

    async def start(self) -> None:
        if self.fails:
            self.fails -= 1
            raise Unavailable("the API is away\nand more")
        self.calls.append("start")

    @property
    def victim(self) -> Victim:
        return Victim(self.kill, self.start)


async def attack(*programs: Program, most: int, pace: Pace = QUICK, seed: int = 1) -> tuple[Killer, list[str]]:
    timeline = Timeline()
    victims = {f"p{i}": each.victim for i, each in enumerate(programs)}
    killer = Killer(victims, Dice(seed), timeline, pace, most=most)
    await killer.run(WHOLE_RUN)
    return killer, timeline.lines


async def test_who_is_killed_runs_again_in_the_end() -> None:
    programs = [Program(), Program(), Program()]
    killer, lines = await attack(*programs, most=12)
    assert killer.kills == 12 == sum(each.calls.count("kill") for each in programs)
    assert all(each.calls == ["kill", "start"] * (len(each.calls) // 2) for each in programs)
    assert sum("kill p" in each for each in lines) == sum("is back" in each for each in lines) == 12


async def test_there_are_never_more_kills_than_planned() -> None:
    killer, _ = await attack(Program(), Program(), Program(), most=1)
    assert killer.kills == 1
    killer, lines = await attack(Program(), most=0)
    assert (killer.kills, lines) == (0, [])


async def test_who_does_not_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.chaos.killer.AGAIN", 0.01)
    program = Program(fails=2)
    _, lines = await attack(program, most=1)
    assert program.calls == ["kill", "start"]
    assert sum("did not start: the API is away" in each for each in lines) == 2


async def test_a_process_that_does_not_come_back_is_reported_with_what_was_killed() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await attack(Program(fails=1_000), most=1)
    [error] = caught.value.exceptions
    assert "p0 did not come back" in str(error)
    assert "kill p0" in str(error)


async def test_time_ends_it() -> None:
    timeline = Timeline()
    killer = Killer({"p": Program().victim}, Dice(1), timeline, Pace(calm=(100, 100)))
    await killer.run(0.05)
    assert (killer.kills, timeline.lines) == (0, [])
