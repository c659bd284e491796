"""Durations and limits of the scheduler."""

import pytest

from devlet.control.scheduler.settings import Settings


@pytest.mark.spec("DA-5.0a")
def test_timeouts_are_those_of_kubernetes() -> None:
    assert (Settings().search.node, Settings().binding_timeout) == (10.0, 600.0)


def test_a_search_in_the_event_loop_is_much_shorter_than_one_in_a_thread() -> None:
    limits = Settings().search
    assert limits.quick <= 0.1 < limits.explain < limits.node


def test_both_names_are_served_on_the_embedded_cluster() -> None:
    assert Settings().names == {"default-scheduler", "devlet"}
