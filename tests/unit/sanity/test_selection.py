import pytest

from devlet.errors import InvalidInput
from devlet.sanity.check import Check, Outcome, Passed
from devlet.sanity.selection import chosen


async def nothing(rig: object) -> Outcome:
    return Passed()


CHECKS = [Check(id, "t", "r", "h", nothing) for id in ("DP-REG-1", "DP-REG-10", "DP-LIST-1")]


def ids(only: list[str], skip: list[str]) -> list[str]:
    return [check.id for check in chosen(CHECKS, only, skip)]


def test_globs_choose_and_leave_out() -> None:
    assert ids([], []) == ["DP-REG-1", "DP-REG-10", "DP-LIST-1"]
    assert ids(["dp-reg-*"], ["DP-REG-10"]) == ["DP-REG-1"]
    assert ids(["DP-REG-1"], []) == ["DP-REG-1"]


@pytest.mark.parametrize(("only", "skip"), [(["DP-REX-*"], []), ([], ["nothing"])])
def test_a_glob_that_means_nothing_is_an_error(only: list[str], skip: list[str]) -> None:
    with pytest.raises(InvalidInput, match="no check matches"):
        chosen(CHECKS, only, skip)
