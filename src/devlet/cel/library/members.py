"""Membership tests for the list functions: values that cannot be compared are not equal, and never an error.

By definition each element is compared with each other. Strings and numbers of one type are looked up by hash
instead.
"""

from collections.abc import Callable, Sequence
from typing import Final

from devlet.cel.library.ranges import check_steps
from devlet.cel.operators import contains, not_equal
from devlet.cel.values import Value

# Without float: NaN does not equal itself, but Python would find it by identity.
_PLAIN: Final = frozenset((int, str, bytes, bool))


def is_equal(a: Value, b: Value) -> bool:
    return not not_equal(a, b)


def same_plain_type(values: Sequence[Value]) -> bool:
    """Return whether Python's equality and hash are correct for all of the values."""
    kinds = set(map(type, values))
    return not kinds or (len(kinds) == 1 and kinds <= _PLAIN)


def membership(values: Sequence[Value], questions: int) -> Callable[[Value], bool]:
    """Return a function that tests whether a value is in `values`; it will be called `questions` times."""
    if not same_plain_type(values):
        check_steps(len(values) * questions)
        return lambda item: contains(item, values)
    known, kind = frozenset(values), type(values[0]) if values else None
    return lambda item: item in known if type(item) is kind else contains(item, values)
