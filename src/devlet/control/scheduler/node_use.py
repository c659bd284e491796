"""What the pods of one node use of it."""

from collections.abc import Mapping
from typing import Final, TypeVar

from devlet.objects.identifiers import PodUID, ResourceName
from devlet.objects.pods.host_ports import Port

__all__ = ["CPU", "MEMORY", "NodeUse", "presumed"]

CPU: Final = ResourceName("cpu")
MEMORY: Final = ResourceName("memory")

# When nodes are ranked, a pod without requests counts with these, as in kube-scheduler.
_PRESUMED_CPU: Final = 100
_PRESUMED_MEMORY: Final = 200 << 20

K = TypeVar("K")

_Taken = tuple[Mapping[ResourceName, int], frozenset[Port]]


def presumed(amounts: Mapping[ResourceName, int]) -> tuple[int, int]:
    """Return millicores of cpu and bytes of memory, for ranking nodes."""
    return amounts.get(CPU, _PRESUMED_CPU), amounts.get(MEMORY, _PRESUMED_MEMORY)


class NodeUse:
    """`used` is exact and has no zeros; `cpu` and `memory` count pods without requests as `presumed` does."""

    __slots__ = ("_pods", "cpu", "memory", "ports", "used")

    def __init__(self) -> None:
        self.used: dict[ResourceName, int] = {}
        self.ports: dict[
            Port, int
        ] = {}  # with the number of pods that use each; more than one if another scheduler placed them
        self.cpu = 0
        self.memory = 0
        self._pods: dict[PodUID, _Taken] = {}

    @property
    def count(self) -> int:
        return len(self._pods)

    def has(self, pod: PodUID) -> bool:
        return pod in self._pods

    def add(self, pod: PodUID, amounts: Mapping[ResourceName, int], ports: frozenset[Port] = frozenset()) -> None:
        """Add or replace a pod."""
        self.remove(pod)
        self._pods[pod] = (amounts, ports)
        self._change(amounts, ports, 1)

    def remove(self, pod: PodUID) -> None:
        """Remove a pod, if it is there."""
        if taken := self._pods.pop(pod, None):
            self._change(*taken, -1)

    def _change(self, amounts: Mapping[ResourceName, int], ports: frozenset[Port], sign: int) -> None:
        cpu, memory = presumed(amounts)
        self.cpu += sign * cpu
        self.memory += sign * memory
        for name, amount in amounts.items():
            _shift(self.used, name, sign * amount)
        for port in ports:
            _shift(self.ports, port, sign)


def _shift(totals: dict[K, int], key: K, by: int) -> None:
    if total := totals.get(key, 0) + by:
        totals[key] = total
    else:
        totals.pop(key, None)
