import sys

import pytest

from devlet.cel.parser import parse
from devlet.cel.recursion import with_room


def depth(levels: int) -> int:
    return 0 if not levels else 1 + depth(levels - 1)


def test_the_recursion_limit_is_raised_only_during_the_call() -> None:
    before = sys.getrecursionlimit()
    assert with_room(depth)(10_000) == 10_000
    assert sys.getrecursionlimit() == before
    with pytest.raises(RecursionError):
        depth(before)


def test_the_limit_is_set_back_after_an_error_and_when_the_last_one_leaves() -> None:
    before = sys.getrecursionlimit()

    @with_room
    def outer() -> int:
        with_room(depth)(1)
        assert depth(5_000) == 5_000
        raise KeyError

    with pytest.raises(KeyError):
        outer()
    assert sys.getrecursionlimit() == before


def test_parsing_a_deep_expression_leaves_the_limit_as_it_was() -> None:
    before = sys.getrecursionlimit()
    parse("(" * 200 + "true" + ")" * 200)
    assert sys.getrecursionlimit() == before
