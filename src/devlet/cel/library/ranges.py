"""Sizes and costs: sums and products of ranges for estimates, and the sizes of values at run time.

Estimates round up and saturate at UNBOUNDED. An unknown size is 0 to UNBOUNDED, never an error.
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
"""The cost of creating a list."""

ONE: Final = Range(1, 1)
ANY_SIZE: Final = Range(0, UNBOUNDED)

# Far above any limit on cost: a call that would need more is not started.
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
    """Estimate a global function that reads its first argument once."""

    def estimate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
        return CallEstimate(scaled(size_of(args[0]), factor))

    return estimate


def scan_cost(factor: float = STRING_FACTOR) -> CostOf:
    """Return the actual cost for `scan`."""
    return lambda args, result: math.ceil(actual_size(args[0]) * factor)


def one(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    return CallEstimate(ONE)


def actual_size(value: Value) -> int:
    """Return the size in code points, bytes, elements or entries; for addresses in bytes; 1 for all other values."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    size: Callable[[], int] | None = getattr(value, "cel_size", None)
    return size() if size else 1


def traversal_cost(value: Value) -> int:
    """Return the cost of reading the whole value; short strings are free. Raises CostExceeded."""
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
    """Check the number of steps in advance. The reference would start, and detect the cost only at the end."""
    if steps > MAX_STEPS:
        raise CostExceeded("operation cancelled: actual cost limit exceeded")
