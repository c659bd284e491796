"""The order in which pytest runs the tests of this project."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.conftest import SLOW, slow_first


def items(timeouts: Sequence[int]) -> Any:
    marks = [pytest.mark.timeout(seconds).mark if seconds else None for seconds in timeouts]
    return [SimpleNamespace(name=number, get_closest_marker=lambda _, m=mark: m) for number, mark in enumerate(marks)]


def names(tests: Any) -> list[int]:
    return [test.name for test in tests]


def test_every_worker_begins_with_its_share_of_the_slow_tests() -> None:
    tests = items([0, 0, 0, 0, SLOW, 2 * SLOW, 0, 300])
    assert names(slow_first(tests, 2)) == [5, 0, 1, 2, 4, 3, 6, 7]
    assert names(slow_first(tests, 1)) == [5, 4, 0, 1, 2, 3, 6, 7]


@given(st.lists(st.sampled_from([0, 300, SLOW, 2 * SLOW])), st.integers(1, 12))
def test_no_test_is_lost_or_run_twice(timeouts: list[int], workers: int) -> None:
    assert sorted(names(slow_first(items(timeouts), workers))) == list(range(len(timeouts)))
