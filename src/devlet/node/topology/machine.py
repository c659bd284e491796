"""The NUMA nodes of this machine and how far they are from each other.

Node ids may have gaps. A kernel without NUMA has no such directory: the machine then has one node, number 0.
"""

import re
from pathlib import Path

from msgspec import Struct

from devlet.errors import InvalidInput
from devlet.node.topology import masks

__all__ = ["SYSFS", "Machine", "read", "simulated"]

SYSFS = Path("/sys/devices/system/node")

# The distance within a node, by definition, and the usual one between neighbours.
_NEAR, _FAR = 10, 20

_node_directory = re.compile(r"node([0-9]{1,6})").fullmatch
_FILE_MAX = 64 * 1024


class Machine(Struct, frozen=True):
    """`nodes` are in ascending order. `distances` has a row and a column for each, or is empty if unknown."""

    nodes: tuple[int, ...] = (0,)
    distances: tuple[tuple[int, ...], ...] = ()


def read(directory: Path = SYSFS) -> Machine:
    """Read the machine from the kernel. If the directory is missing or empty, the machine has one node."""
    nodes = _nodes(directory)
    if not nodes:
        return simulated(1)
    rows = tuple(_distances(directory / f"node{node}" / "distance") for node in nodes)
    return Machine(nodes, rows if all(len(row) == len(nodes) for row in rows) else ())


def simulated(count: int) -> Machine:
    """Return a machine with this many nodes, to try out NUMA on a machine without it."""
    if not 1 <= count <= masks.MAX_NODE + 1:
        raise InvalidInput(f"{count} NUMA nodes cannot be simulated: 1 to {masks.MAX_NODE + 1} can")
    nodes = range(count)
    return Machine(tuple(nodes), tuple(tuple(_NEAR if a == b else _FAR for b in nodes) for a in nodes))


def _nodes(directory: Path) -> tuple[int, ...]:
    try:
        names = [path.name for path in directory.iterdir()]
    except OSError:
        return ()
    return tuple(sorted(int(match[1]) for name in names if (match := _node_directory(name))))


def _distances(file: Path) -> tuple[int, ...]:
    try:
        with file.open(encoding="ascii") as opened:
            return tuple(int(word) for word in opened.read(_FILE_MAX).split())
    except (OSError, ValueError):
        return ()
