"""Moments are spread over the whole of a call."""

import anyio
import pytest

from devlet.kit.dice import Dice
from devlet.sanity.checks.moments import duration, moments

pytestmark = pytest.mark.anyio


def test_there_is_one_moment_in_each_part_of_a_call() -> None:
    found = list(moments(8.0, 4, Dice(1)))
    assert [int(moment // 2) for moment in found] == [0, 1, 2, 3]
    assert found == list(moments(8.0, 4, Dice(1)))


def test_a_slow_call_is_not_interrupted_as_often() -> None:
    assert len(list(moments(12.0, 30, Dice(1)))) == 5
    assert len(list(moments(100.0, 30, Dice(1)))) == 1
    assert len(list(moments(0.0, 30, Dice(1)))) == 30


async def test_a_call_takes_as_long_as_it_takes() -> None:
    assert await duration(lambda: anyio.sleep(0.01)) >= 0.01
