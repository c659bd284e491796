"""NUMA nodes for devices that are on none."""

from pathlib import Path

__all__ = ["of_machine", "spread"]

NODES = Path("/sys/devices/system/node")


def of_machine(nodes: Path = NODES) -> int:
    """How many this machine has: a device must not claim to be near to any other."""
    return max(1, len(list(nodes.glob("node[0-9]*"))))


def spread(count: int, nodes: int) -> dict[str, int]:
    """GPUs, and the NUMA node of each."""
    return {f"gpu-{number}": number * nodes // count for number in range(count)}
