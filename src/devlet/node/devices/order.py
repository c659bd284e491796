"""The natural order of device ids: gpu-2 before gpu-10."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["in_order", "natural"]

T = TypeVar("T")

_number = re.compile("[0-9]+")


def natural(id: str) -> tuple[str, str]:
    """Return a sort key that is unique to the id."""
    return _number.sub(_padded, id), id


def _padded(number: re.Match[str]) -> str:
    return number[0].zfill(20)


def in_order(things: Iterable[T], key: Callable[[T], str]) -> list[T]:
    """Return the things sorted by the id that `key` returns."""
    return sorted(things, key=lambda thing: natural(key(thing)))
