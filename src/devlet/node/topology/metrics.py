"""The metrics of admission, as a protocol: the owner of the metrics implements it."""

from typing import Protocol

__all__ = ["NUMA_NODE", "TopologyMetrics", "Uncounted"]

NUMA_NODE = "numa_node"  # the boundary that devices are aligned to


class TopologyMetrics(Protocol):
    def admission_requested(self) -> None: ...

    def admission_failed(self) -> None:
        """A pod was rejected, under any policy but none."""
        ...

    def admission_took(self, seconds: float) -> None: ...

    def aligned(self, scope: str, boundary: str) -> None:
        """A container, or a pod under scope pod, has all its devices within the boundary, guaranteed by policy."""
        ...

    def not_aligned(self, scope: str, boundary: str) -> None: ...


class Uncounted:
    """Metrics that are not counted."""

    def admission_requested(self) -> None:
        pass

    def admission_failed(self) -> None:
        pass

    def admission_took(self, seconds: float) -> None:
        pass

    def aligned(self, scope: str, boundary: str) -> None:
        pass

    def not_aligned(self, scope: str, boundary: str) -> None:
        pass
