"""Sizes and costs: sums and products of ranges for estimates, and what a value counts for at run time.

Estimates round up and saturate at UNBOUNDED; a size that nobody knows is 0 to UNBOUNDED, never an error.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

from devlet.cel.functions import UNBOUNDED, CallEstimate, CostOf, Estimator, Range, SizedNode
from devlet.cel.operators import check_weight
from devlet.cel.values import CostExceeded, Value

STRING_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25
LIST_COST: Final = 10
"""For making a list."""

ONE: Final = Range(1, 1)
ANY_SIZE: Final = Range(0, UNBOUNDED)

# Far beyond what any limit on cost allows: a call that would do more is not even begun.
MAX_STEPS: Final = 20_000_000


def plus(*ranges: Range) -> Range:
    return Range(*(min(sum(ends), UNBOUNDED) for ends in ((r.min for r in ranges), (r.max for r in ranges))))


def times(a: Range, b: Range) -> Range:
    return Range(min(a.min * b.min, UNBOUNDED), min(a.max * b.max, UNBOUNDED))


def scaled(sizes: Range, factor: float) -> Range:
    return Range(_scaled(sizes.min, factor), _scaled(sizes.max, factor))


def _scaled(size: int, factor: float) -> int:
    product = float(size) * factor
    return math.ceil(product) if product < 2.0**64 else UNBOUNDED


def size_of(node: SizedNode) -> Range:
    return node.size or ANY_SIZE


def scan(factor: float = STRING_FACTOR) -> Estimator:
    """Of a global function that reads its first argument once."""

    def estimate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
        return CallEstimate(scaled(size_of(args[0]), factor))

    return estimate


def scan_cost(factor: float = STRING_FACTOR) -> CostOf:
    """What `scan` estimates."""
    return lambda args, result: math.ceil(actual_size(args[0]) * factor)


def one(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    return CallEstimate(ONE)


def actual_size(value: Value) -> int:
    """Code points, bytes, elements or entries; of addresses the bytes they need; of everything else one."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    size: Callable[[], int] | None = getattr(value, "cel_size", None)
    return size() if size else 1


def traversal_cost(value: Value) -> int:
    """Of looking at all of it; texts that are short cost nothing. Raises CostExceeded."""
    check_weight(value)
    return _traversal_cost(value)


def _traversal_cost(value: Value) -> int:
    if isinstance(value, str):
        return int(len(value.encode(errors="surrogatepass")) * STRING_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list | tuple):
        return sum(map(_traversal_cost, value))
    if isinstance(value, dict):
        return sum(_traversal_cost(key) + _traversal_cost(item) for key, item in value.items())
    return 1


def check_steps(steps: int) -> None:
    """The reference would begin, and find out about the cost when it is done."""
    if steps > MAX_STEPS:
        raise CostExceeded("operation cancelled: actual cost limit exceeded")
