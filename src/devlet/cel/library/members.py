"""Is it in there? Equality as the functions on lists see it: what cannot be compared is not equal, never an error.

Comparing each with each is what the language means; texts and numbers of one type are found by hash instead.
"""

from collections.abc import Callable, Sequence
from typing import Final

from devlet.cel.library.ranges import check_steps
from devlet.cel.operators import contains, not_equal
from devlet.cel.values import Value

# Not float: NaN is not equal to itself, but Python finds it by identity.
_PLAIN: Final = frozenset((int, str, bytes, bool))


def is_equal(a: Value, b: Value) -> bool:
    return not not_equal(a, b)


def same_plain_type(values: Sequence[Value]) -> bool:
    """Whether Python's own equality and hash are right for all of them."""
    kinds = set(map(type, values))
    return not kinds or (len(kinds) == 1 and kinds <= _PLAIN)


def membership(values: Sequence[Value], questions: int) -> Callable[[Value], bool]:
    """A function that tells whether something is in `values`; it will be asked so often."""
    if not same_plain_type(values):
        check_steps(len(values) * questions)
        return lambda item: contains(item, values)
    known, kind = frozenset(values), type(values[0]) if values else None
    return lambda item: item in known if type(item) is kind else contains(item, values)
