"""The index in front of a slice's name.

The allocator reads slices in the order of their names, so it prefers devices in the order in which their driver lists
them. All indexes of a pool have the same length, or the tenth slice would come before the second.
"""

import re
from typing import Final

__all__ = ["decode", "encode", "generated", "index_length"]

MIN_LENGTH: Final = 5

_hex = re.compile(r"([0-9a-f]+)-").match


def index_length(count: int) -> int:
    """Return how many hexadecimal digits an index has if there are `count` slices."""
    return max(MIN_LENGTH, len(f"{max(count - 1, 0):x}"))


def encode(index: int, count: int) -> str:
    return f"{index:0{index_length(count)}x}"


def decode(name: str, count: int) -> int | None:
    """Return the index in a slice's name; None if the name is not one of `count` slices."""
    found = _hex(name)
    if found is None or len(found[1]) != index_length(count):
        return None
    index = int(found[1], 16)
    return index if index < count else None


def generated(index: int, count: int, driver: str, owner: str) -> str:
    """Return the prefix of a name, to which the server adds a suffix. It is in lower case, as names of objects must
    be."""
    return "-".join(filter(None, (encode(index, count), driver.lower(), owner))) + "-"
