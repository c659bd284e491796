"""Order, shared drivers, and what becomes of a check that ends in an error."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from devlet.errors import NotFound, PluginRefused, Unavailable
from devlet.kit.dice import Dice
from devlet.sanity.check import CannotTell, Check, Failed, Outcome, Passed
from devlet.sanity.report import Result
from devlet.sanity.runner import Runner

pytestmark = pytest.mark.anyio


class FakeRig:
    def __init__(self, number: int, trouble: str = "", hopeless: bool = False) -> None:
        self.number = number
        self.trouble = trouble
        self.never_came_up = hopeless
        self.patience = 0.0
        self.dice = Dice(0)

    def log(self) -> str:
        return "log"


class FakeStand:
    kind = "fake"
    driver = "./driver"

    def __init__(self, trouble: str = "", since: int = 1) -> None:
        self.opened = 0
        self.trouble = trouble
        self.since = since

    @asynccontextmanager
    async def open(self) -> AsyncIterator[FakeRig]:
        self.opened += 1
        trouble = self.trouble if self.opened >= self.since else ""
        yield FakeRig(self.opened, trouble, bool(trouble))


class ClosedStand(FakeStand):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[FakeRig]:
        async with super().open() as rig:
            if rig.trouble:
                raise ExceptionGroup("tasks", [Unavailable("the cluster is away")])
            yield rig


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def began(self, check: Check[Any]) -> None:
        self.lines.append(f"{check.id}?")

    def ended(self, result: Result) -> None:
        self.lines.append(f"{result.check.id} {result.word}")


def check(id: str, act: Any = None, **rest: Any) -> Check[FakeRig]:
    async def run(rig: FakeRig) -> Outcome:
        outcome: Outcome = act(rig) if act else Passed(str(rig.number))
        return outcome

    return Check(id, "t", "r", "h", run, **rest)


async def texts(stand: FakeStand, *checks: Check[FakeRig]) -> list[str]:
    report = await Runner(stand, Heard()).run(checks)
    return [f"{result.word} {result.text}" for result in report.results]


async def test_checks_share_a_driver_and_fresh_ones_come_later_with_their_own() -> None:
    heard = Heard()
    checks = [check("A"), check("B", fresh=True), check("C"), check("D", fresh=True)]
    report = await Runner(FakeStand(), heard).run(checks)
    assert [result.text for result in report.results] == ["1", "2", "1", "3"]
    assert heard.lines == ["A?", "A passed", "C?", "C passed", "B?", "B passed", "D?", "D passed"]


async def test_after_a_finding_the_driver_is_another_one() -> None:
    found = await texts(FakeStand(), check("A"), check("B", lambda rig: Failed("bad")), check("C"))
    assert found == ["passed 1", "failed bad", "passed 2"]


async def test_a_driver_that_never_came_up_is_not_tried_again() -> None:
    stand = FakeStand("it never came up")
    report = await Runner(stand, Heard()).run([check("A", lambda rig: Failed("x")), check("B")])
    assert (stand.opened, report.trouble) == (1, "it never came up")


async def test_a_check_with_nothing_to_test_is_skipped_and_a_driver_error_is_a_finding() -> None:
    def cannot(rig: FakeRig) -> Outcome:
        raise CannotTell("no devices")

    def refused(rig: FakeRig) -> Outcome:
        raise PluginRefused("x", "Allocate failed")

    def both(rig: FakeRig) -> Outcome:
        raise ExceptionGroup("several", [ExceptionGroup("inner", [PluginRefused("x", "it ended")])])

    found = await texts(FakeStand(), check("A", cannot), check("B", refused), check("C", both))
    assert found == ["skipped no devices", "failed Allocate failed", "failed it ended"]


async def test_a_mistake_in_a_check_passes() -> None:
    def wrong(rig: FakeRig) -> Outcome:
        raise ExceptionGroup("several", [CannotTell("x"), ZeroDivisionError()])

    with pytest.raises(ExceptionGroup):
        await texts(FakeStand(), check("A", wrong))


async def test_no_check_lasts_for_ever() -> None:
    async def run(rig: FakeRig) -> Outcome:
        await anyio.sleep_forever()
        return Passed()

    hangs = Check("A", "t", "r", "h", run, within=0.01)
    assert await texts(FakeStand(), hangs) == ["failed the check did not finish within 0.01 s"]


async def test_chance_depends_on_seed_and_check_alone() -> None:
    def rolled(rig: FakeRig) -> Outcome:
        return Passed(str([rig.dice.number(0, 999) for _ in range(3)]))

    async def rolls(seed: int, *ids: str) -> list[str]:
        report = await Runner(FakeStand(), Heard(), seed).run([check(id, rolled) for id in ids])
        return [result.text for result in report.results]

    assert await rolls(5, "A", "B") == [*await rolls(5, "A"), *await rolls(5, "B")]
    assert await rolls(5, "A") != await rolls(6, "A")


async def test_a_driver_that_stops_coming_up_is_a_finding_where_it_happens() -> None:
    checks = [check(id, fresh=True) for id in "ABCD"]
    report = await Runner(FakeStand("it exited with 3", since=3), Heard()).run(checks)
    assert [result.word for result in report.results] == ["passed", "passed", "failed", "skipped"]
    lost, later = report.results[2:]
    assert lost.text == "the driver came up before, but no longer does: it exited with 3"
    assert (later.text, lost.log) == ("the driver no longer comes up: see C", "log")
    assert (report.trouble, report.exit_code()) == ("it exited with 3", 1)


async def test_a_driver_that_ends_during_a_check_that_does_not_end_it_is_a_finding() -> None:
    def passes(rig: FakeRig) -> Outcome:
        rig.trouble = "the driver exited with 1"
        return Passed()

    def skips(rig: FakeRig) -> Outcome:
        rig.trouble = "the driver exited with 2"
        raise CannotTell("nothing to call")

    found = await texts(FakeStand(), check("A", passes), check("B", skips), check("C", passes, fresh=True), check("D"))
    assert found == ["failed the driver exited with 1", "failed the driver exited with 2", "passed ", "passed 3"]


async def test_another_error_leaves_its_check_untold_and_the_run_goes_on() -> None:
    def error(rig: FakeRig) -> Outcome:
        raise NotFound("no such claim")

    found = await texts(FakeStand(), check("A", error), check("B"))
    assert found == ["skipped the check could not be run: no such claim", "passed 1"]


async def test_a_stand_that_cannot_be_had_any_more_costs_one_check_and_at_the_beginning_all() -> None:
    found = await texts(ClosedStand("x", since=2), check("A"), check("B", fresh=True))
    assert found == ["passed 1", "skipped the check could not be run: the cluster is away"]
    with pytest.raises(ExceptionGroup):
        await texts(ClosedStand("x"), check("A"))


async def test_a_run_that_is_interrupted_tells_what_was_done() -> None:
    def interrupts(rig: FakeRig) -> Outcome:
        runner.interrupt("SIGTERM")
        return Passed()

    runner = Runner(FakeStand(), Heard())
    report = await runner.run([check("A"), check("B", interrupts), check("C")])
    assert [result.check.id for result in report.results] == ["A", "B"]
    assert report.interrupted == "SIGTERM"
    assert report.summary.startswith("interrupted by SIGTERM: 2 passed in ")


async def test_what_a_driver_writes_is_without_control_characters() -> None:
    [result] = (await Runner(FakeStand(), Heard()).run([check("A", lambda rig: Failed("\x1b[2J\0\tx\ny"))])).results
    assert result.text == "\\x1b[2J\\x00\tx\ny"
