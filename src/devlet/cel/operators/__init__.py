"""The operators of the language on values: arithmetic, order, equality, index, `in`, `size`, and field access.

Python's own operators are wrong here: `1 == True`, `-7 // 2`, `{1: x}[True]` and unlimited integers follow Python's
rules, not those of CEL.
"""

from devlet.cel.operators.arithmetic import add, divide, logical_not, modulo, multiply, negate, subtract
from devlet.cel.operators.containers import (
    contains,
    has,
    index,
    optional_index,
    optional_select,
    select,
    size,
)
from devlet.cel.operators.equality import equal, not_equal
from devlet.cel.operators.errors import NO_OVERLOAD, unsupported
from devlet.cel.operators.lookup import ABSENT, find, list_index
from devlet.cel.operators.order import compare, greater, greater_equals, less, less_equals
from devlet.cel.operators.weight import check_weight

__all__ = [
    "ABSENT",
    "NO_OVERLOAD",
    "add",
    "check_weight",
    "compare",
    "contains",
    "divide",
    "equal",
    "find",
    "greater",
    "greater_equals",
    "has",
    "index",
    "less",
    "less_equals",
    "list_index",
    "logical_not",
    "modulo",
    "multiply",
    "negate",
    "not_equal",
    "optional_index",
    "optional_select",
    "select",
    "size",
    "subtract",
    "unsupported",
]
