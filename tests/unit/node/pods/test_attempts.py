from datetime import UTC, datetime, timedelta

from devlet.kit.backoff import Backoff
from devlet.node.pods.attempts import Attempts

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_the_first_try_is_due_at_once_and_later_ones_after_a_while_that_grows() -> None:
    attempts = Attempts(Backoff(1.0, 60.0, jitter=0.0), 0.1)
    assert attempts.is_due(NOW)
    assert attempts.failed(NOW) == after(1)
    assert not attempts.is_due(after(0.9)) and attempts.is_due(after(1))
    assert attempts.failed(after(1)) == after(3)


def test_a_sign_brings_the_next_try_forward_but_not_the_moment_after_the_last() -> None:
    attempts = Attempts(Backoff(10.0, 60.0, jitter=0.0), 0.1)
    assert not attempts.hurry()
    attempts.failed(NOW)
    assert attempts.hurry() and attempts.due == after(0.1)


def test_success_forgets_failures() -> None:
    attempts = Attempts(Backoff(1.0, 60.0, jitter=0.0), 0.1)
    attempts.failed(NOW)
    attempts.failed(NOW)
    attempts.succeeded()
    assert attempts.is_due(NOW) and not attempts.hurry() and attempts.failed(NOW) == after(1)


def test_a_sign_during_a_try_counts_for_the_next_one() -> None:
    attempts = Attempts(Backoff(10.0, 60.0, jitter=0.0), 0.1)
    attempts.begin()
    assert not attempts.hurry()
    assert attempts.failed(NOW) == after(0.1)
    attempts.begin()
    assert attempts.failed(after(1)) == after(21)
