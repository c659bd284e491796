"""`attribute.includes(value)`: whether the value is in the list, or equal to the single value. For attributes that may
be either.

Lists above a limit are an error, so that the cost is always bounded.
"""

from collections.abc import Sequence
from typing import Final

from devlet.cel.functions import CallEstimate, Function, Library, Overload, Range, SizedNode
from devlet.cel.library.members import is_equal
from devlet.cel.types import BOOL, DYN
from devlet.cel.values import CelError, Value

MAX_VALUES: Final = 48


def _includes(target: Value, item: Value) -> bool:
    if not isinstance(target, list | tuple):
        return is_equal(target, item)
    if any(is_equal(value, item) for value in target[:MAX_VALUES]):
        return True
    if len(target) > MAX_VALUES:
        raise CelError(f"'includes' function cannot be applied to lists longer than {MAX_VALUES} values")
    return False


def _estimate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    return CallEstimate(Range(0, MAX_VALUES))


LIBRARY: Final = Library(
    "dra.includes",
    (Function("includes", (Overload("dra_includes_dyn_dyn", (DYN, DYN), BOOL, _includes, True, _estimate),)),),
)
