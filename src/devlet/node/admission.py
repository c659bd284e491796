"""Decides whether a pod may run on this node: devices first, aligned as the topology policy asks, then everything else.

A rejection leaves no trace: devices that were reserved for the pod are returned when its attempt ends. Admitted pods
are counted here until they are forgotten, so of two pods that come at the same time only one gets the last place.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from devlet.node import fit
from devlet.node.reports import Rejection
from devlet.node.topology.hints import Provider
from devlet.objects import names
from devlet.objects.identifiers import PodUID, ResourceName
from devlet.objects.pods import host_ports
from devlet.objects.pods.host_ports import Port
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.values.quantity import ZERO

__all__ = ["Admission", "Attempt", "Devices", "Topology"]


class Attempt(Provider, Protocol):
    async def commit(self) -> None: ...


class Devices(Protocol):
    def attempt(self, pod: Pod) -> AbstractAsyncContextManager[Attempt]: ...

    def allocated_counts(self) -> Mapping[ResourceName, int]: ...


class Topology(Protocol):
    async def admit(self, pod: Pod, providers: Sequence[Provider]) -> Rejection | None: ...


_NO_PORTS = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"


class Admission:
    """`node` returns this node as it is now: its labels and taints, and what can be allocated on it."""

    def __init__(self, devices: Devices, topology: Topology, node: Callable[[], Node]) -> None:
        self._devices = devices
        self._topology = topology
        self._node = node
        self._admitted: dict[PodUID, fit.Amounts] = {}
        self._used: fit.Amounts = {}  # their sum; adding up thousands of pods each time would take long
        self._ports: dict[PodUID, frozenset[Port]] = {}

    async def admit(self, pod: Pod, *, static: bool = False) -> Rejection | None:
        """Return None if the pod is admitted. Raise Unavailable if that cannot be stored: nothing is decided then, and
        the caller should retry. Static pods are meant for this node, whatever its taints."""
        async with self._devices.attempt(pod) as attempt:
            rejection = await self._topology.admit(pod, [attempt]) or self._check(pod)
            if rejection is None and not static:
                rejection = fit.repelled(pod, self._node())
            if rejection is not None:
                return rejection
            self.adopt(pod)  # before the next await, so that no other pod takes its place
            try:
                await attempt.commit()
            except BaseException:
                self.forget(pod.uid)
                raise
        return None

    def unknown(self, pod: Pod) -> tuple[ResourceName, ...]:
        """Return the extended resources that the pod requests and this node does not have."""
        has = fit.amounts(self._node().status.allocatable)
        extended = [name for name in fit.requests(pod) if not names.extended_resource_name(name)]
        return tuple(name for name in extended if has.get(name, ZERO).is_zero)

    def adopt(self, pod: Pod) -> None:
        """Count a pod that was admitted, now or before the restart."""
        self.forget(pod.uid)
        self._admitted[pod.uid] = fit.requests(pod)
        self._used = fit.added(self._used, self._admitted[pod.uid])
        if ports := host_ports.of_pod(pod):
            self._ports[pod.uid] = ports

    def forget(self, pod: PodUID) -> None:
        self._used = fit.less(self._used, self._admitted.pop(pod, {}))
        self._ports.pop(pod, None)

    def _check(self, pod: Pod) -> Rejection | None:
        node = self._node()
        others = fit.less(self._used, self._admitted.get(pod.uid, {}))
        allocatable = fit.raised(fit.amounts(node.status.allocatable), self._devices.allocated_counts())
        return fit.mismatch(pod, node) or fit.lacking(pod, others, allocatable) or self._port_conflict(pod)

    def _port_conflict(self, pod: Pod) -> Rejection | None:
        """Return a rejection if another pod uses a host port of this one."""
        used = {port for uid, ports in self._ports.items() if uid != pod.uid for port in ports}
        return Rejection("NodePorts", _NO_PORTS) if host_ports.conflict(host_ports.of_pod(pod), used) else None
