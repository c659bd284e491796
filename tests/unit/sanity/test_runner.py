"""Order, shared drivers, and what becomes of a check that ends in an error."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from devlet.errors import PluginRefused
from devlet.sanity.check import CannotTell, Check, Failed, Outcome, Passed
from devlet.sanity.report import Result
from devlet.sanity.runner import Runner
from devlet.testing.dice import Dice

pytestmark = pytest.mark.anyio


class FakeRig:
    def __init__(self, number: int, trouble: str = "", hopeless: bool = False) -> None:
        self.number = number
        self.trouble = trouble
        self.is_hopeless = hopeless
        self.patience = 0.0
        self.dice = Dice(0)

    def log(self) -> str:
        return "log"


class FakeStand:
    kind = "fake"
    driver = "./driver"

    def __init__(self, trouble: str = "") -> None:
        self.opened = 0
        self.trouble = trouble

    @asynccontextmanager
    async def open(self) -> AsyncIterator[FakeRig]:
        self.opened += 1
        yield FakeRig(self.opened, self.trouble, bool(self.trouble))


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


async def test_what_cannot_be_told_is_skipped_and_an_error_of_the_driver_is_a_finding() -> None:
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
    assert await texts(FakeStand(), hangs) == ["failed not done after 0.01 s"]


async def test_chance_depends_on_seed_and_check_alone() -> None:
    def rolled(rig: FakeRig) -> Outcome:
        return Passed(str([rig.dice.number(0, 999) for _ in range(3)]))

    async def rolls(seed: int, *ids: str) -> list[str]:
        report = await Runner(FakeStand(), Heard(), seed).run([check(id, rolled) for id in ids])
        return [result.text for result in report.results]

    assert await rolls(5, "A", "B") == [*await rolls(5, "A"), *await rolls(5, "B")]
    assert await rolls(5, "A") != await rolls(6, "A")
