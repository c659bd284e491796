"""CEL values at run time: Python's own wherever possible.

    CEL         Python                        CEL         Python
    null        None                          list        list or tuple
    bool        bool                          map         dict (a subclass with `__missing__` has defaults)
    int         int                           optional    Optional
    uint        Uint                          type        Type (devlet.cel.types)
    double      float                         duration    Duration
    string      str                           timestamp   Timestamp
    bytes       bytes                         opaque      a class of its own, e.g. objects.quantity.Quantity

There are two traps. `bool` is an `int` in Python, so test `type(x) is int` and never `isinstance`. And True, 1 and 1.0
are the same key of a dict, while CEL distinguishes bool from numbers. Errors are exceptions (`CelError`), not values.
"""

from dataclasses import dataclass, field
from typing import Any, Final

Value = Any
"""Any value in the table above."""

Constant = None | bool | int | float | str | bytes
"""The value of a literal; a uint literal is a `Uint`."""


class CelError(Exception):
    """Evaluation failed. The text is the reference's; `node` is the id of the failing node, if known."""

    def __init__(self, message: str, node: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


class CostExceeded(CelError):
    """The limit on cost or time was reached. Unlike other errors it is not absorbed by `&&` and `||`."""


class Uint(int):
    """An unsigned 64-bit number."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Nanoseconds since 1970 in UTC. `offset` (seconds east) is the zone in which it was written, which only affects
    its text."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """An optional value. `value` counts only if it is present."""

    value: Value = None
    has_value: bool = True


NONE: Final = Optional(None, False)

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1

TIMESTAMP_MIN: Final = -62135596800 * 10**9
TIMESTAMP_MAX: Final = 253402300800 * 10**9 - 1


def timestamp(nanoseconds: int, offset: int = 0) -> Timestamp:
    """Return a timestamp from the year 1 to the year 9999, or raise an error."""
    if not TIMESTAMP_MIN <= nanoseconds <= TIMESTAMP_MAX:
        raise CelError("timestamp overflow")
    return Timestamp(nanoseconds, offset)
