import pytest

from devlet.cel import operators as op
from devlet.cel.values import Uint


@pytest.mark.parametrize(
    ("key", "found"),
    [(1, True), (1.0, True), (Uint(1), True), (True, False), ("1", False), (1.5, False), (None, False), (b"1", False)],
)
def test_keys_are_found_by_value_but_true_is_not_one(key: object, found: bool) -> None:
    assert op.contains(key, {1: "x"}) is found
    assert (op.find({1: "x"}, key) is not op.ABSENT) is found


def test_a_double_as_a_key_is_found_by_doubles_only() -> None:
    assert op.contains(1.0, {1.0: "x"})
    assert not op.contains(1, {1.0: "x"})
    assert not op.contains(1, {True: "x"})
    assert op.contains(True, {True: "x"})


def test_whole_numbers_of_any_type_are_an_index() -> None:
    assert [op.index([5, 6], key) for key in (1, 1.0, Uint(1))] == [6, 6, 6]
