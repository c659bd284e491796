import pytest

from devlet.cel.cost import LIMIT_EXCEEDED, Tracker
from devlet.cel.values import CostExceeded


def test_costs_add_up_to_the_limit_and_no_further() -> None:
    tracker = Tracker(limit=3)
    tracker.record(1, "a", 2)
    tracker.record(2, "b", 1)
    with pytest.raises(CostExceeded, match=LIMIT_EXCEEDED) as caught:
        tracker.record(3, "c", 1)
    assert tracker.cost == 4
    assert caught.value.node == 3


def test_the_arguments_of_a_call_are_taken_in_their_order() -> None:
    tracker = Tracker(limit=100)
    tracker.record(1, "a")
    tracker.record(2, "b")
    assert tracker.take([1, 2]) == ["a", "b"]
    assert tracker.take([1, 2]) is None


def test_an_argument_that_was_never_computed_makes_the_call_unknown_and_the_others_are_gone() -> None:
    tracker = Tracker(limit=100)
    tracker.record(1, "a")
    tracker.record(3, "c")
    assert tracker.take([1, 2, 3]) is None
    assert tracker.take([3]) is None
    assert tracker.take([1]) == ["a"]


def test_dropping_a_value_drops_all_that_came_later() -> None:
    tracker = Tracker(limit=100)
    for node in (1, 2, 3):
        tracker.record(node, node)
    tracker.drop([2, 7])
    assert tracker.take([3]) is None
    assert tracker.take([1]) == [1]


def test_of_a_node_that_was_computed_twice_the_last_value_counts() -> None:
    tracker = Tracker(limit=100, trace={})
    tracker.record(1, "old")
    tracker.record(1, "new")
    assert tracker.trace == {1: "new"}
    assert tracker.take([1]) == ["new"]
    assert tracker.take([1]) == ["old"]
