"""The work of reading a value: how many values it contains.

This is a limit of devlet. The reference computes without limit what it does not count.
"""

from collections.abc import Iterable
from typing import Final

from devlet.cel.values import CostExceeded, Optional, Value

TOO_MUCH: Final = "operation cancelled: actual cost limit exceeded"

LARGEST: Final = 1_000_000
"""The limit on the values in a value, far beyond what an expression with a budget of a million needs."""


class Joined(list[Value]):
    """The result of `+` on two lists. Only here is an element that cannot be compared an error."""

    __slots__ = ()


CONTAINERS: Final = frozenset((list, tuple, dict, Joined, Optional))


def check_weight(value: Value) -> None:
    """Check the work of reading everything in a value. Raises CostExceeded."""
    if type(value) in CONTAINERS and weight(value, {}) > LARGEST:
        raise CostExceeded(TOO_MUCH)


def weight(value: Value, known: dict[int, int]) -> int:
    """Return how many values a comparison may visit. A list may contain another one many times, so each is weighed
    once."""
    if type(value) not in CONTAINERS:
        return 1
    found = known.get(id(value))
    if found is None:
        parts = value.values() if isinstance(value, dict) else (value.value,) if type(value) is Optional else value
        found = 1 + (len(parts) if _is_flat(parts) else sum(weight(part, known) for part in parts))
        known[id(value)] = found
    return found


def _is_flat(parts: Iterable[Value]) -> bool:
    return CONTAINERS.isdisjoint(map(type, parts))
