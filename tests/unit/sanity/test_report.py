from dataclasses import replace

import pytest

from devlet.sanity.check import Check, Failed, Outcome, Passed, Skipped, Warned
from devlet.sanity.report import Report, Result


async def nothing(rig: object) -> Outcome:
    return Passed()


def report(*outcomes: Outcome) -> Report:
    check = Check("A-1", "It is good", "be good", "look", nothing)
    return Report("device-plugin", "./x", 1, "2026-01-02T03:04:05Z", 2.0, tuple(Result(check, o) for o in outcomes))


@pytest.mark.parametrize(
    ("outcomes", "code", "strict"),
    [
        ([Passed(), Skipped("x")], 0, 0),
        ([Passed(), Warned("x")], 0, 1),
        ([Passed(), Failed("x")], 1, 1),
        ([Skipped("x")], 2, 2),
        ([], 2, 2),
    ],
)
def test_the_exit_code_says_what_is_known(outcomes: list[Outcome], code: int, strict: int) -> None:
    made = report(*outcomes)
    assert (made.exit_code(), made.exit_code(strict=True)) == (code, strict)


def test_a_driver_in_trouble_is_not_sound_whatever_passed() -> None:
    made = replace(report(Passed()), trouble="it ended")
    assert made.exit_code() == 2
    assert replace(report(Passed(), Failed("x")), trouble="it ended").exit_code() == 1


def test_the_summary_counts() -> None:
    made = report(Passed(), Passed(), Failed("x"))
    assert made.summary == "2 passed, 1 failed in 2.0 s"
    assert report().summary == "no checks were run in 2.0 s"


def test_a_finding_says_how_to_see_it() -> None:
    default, own, passed = report(Failed("x"), Warned("y", "press it"), Passed()).results
    assert (default.how, own.how, passed.how) == ("look", "press it", "")
