import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.kit.backoff import Backoff


def test_waits_double_up_to_the_limit() -> None:
    waits = Backoff(first=0.5, limit=5, jitter=0).delays(lambda: 0.0)
    assert list(islice(waits, 6)) == [0.5, 1, 2, 4, 5, 5]


def test_jitter_is_a_share_on_top() -> None:
    assert Backoff(first=1, limit=1, jitter=0.2).delay(0, lambda: 0.5) == pytest.approx(1.1)


@given(
    first=st.floats(0.001, 100),
    times=st.floats(1, 1000),
    factor=st.floats(1, 10),
    jitter=st.floats(0, 1),
    attempt=st.integers(0, 100_000),
    seed=st.integers(),
)
def test_every_wait_lies_between_the_first_and_the_limit_plus_jitter(
    first: float, times: float, factor: float, jitter: float, attempt: int, seed: int
) -> None:
    backoff = Backoff(first, first * times, factor, jitter)
    wait = backoff.delay(attempt, random.Random(seed).random)
    assert first <= wait <= backoff.limit * (1 + jitter)


@pytest.mark.parametrize(("first", "limit"), [(0, 1), (-1, 1), (2, 1), (1, float("inf")), (float("nan"), 1)])
def test_a_back_off_that_makes_no_sense_is_refused(first: float, limit: float) -> None:
    with pytest.raises(ValueError, match="0 < first <= limit"):
        Backoff(first, limit)


def test_a_shrinking_factor_is_refused() -> None:
    with pytest.raises(ValueError, match="factor"):
        Backoff(1, 2, factor=0.5)
