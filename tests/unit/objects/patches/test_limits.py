import pytest

from devlet.errors import BadRequest
from devlet.objects.patches.limits import MAX_DEPTH, check_depth, depth


def nested(levels: int) -> object:
    value: object = "leaf"
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def test_depth_counts_objects_and_lists_inside_each_other() -> None:
    assert [depth(value) for value in ("x", {}, {"a": [1]}, [{"a": {}}, 1])] == [0, 1, 2, 3]


def test_counting_stops_soon_after_the_limit() -> None:
    assert depth(nested(5000), limit=10) == 11


def test_a_value_at_the_limit_passes_and_one_below_it_does_not() -> None:
    check_depth(nested(MAX_DEPTH), "it")
    with pytest.raises(BadRequest, match="it is nested more than 100 levels deep"):
        check_depth(nested(MAX_DEPTH + 1), "it")
