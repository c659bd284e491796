"""NUMA nodes for simulated devices."""

from pathlib import Path

__all__ = ["of_machine", "spread"]

NODES = Path("/sys/devices/system/node")


def of_machine(nodes: Path = NODES) -> int:
    """Return the number of NUMA nodes of this machine; a device must not name a node that does not exist."""
    return max(1, len(list(nodes.glob("node[0-9]*"))))


def spread(count: int, nodes: int) -> dict[str, int]:
    """Return the names of the GPUs with the NUMA node of each."""
    return {f"gpu-{number}": number * nodes // count for number in range(count)}
