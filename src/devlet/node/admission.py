"""May this pod run here? Devices first, as near to each other as the policy wants, then everything else.

A refusal leaves no trace: what was reserved for the pod goes back when its attempt ends. The pods that were admitted
are counted here until they are forgotten; of two that come at the same time only one can get the last place.
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
    """`node` is this node as it is now: its labels and taints and what can be allocated on it."""

    def __init__(self, devices: Devices, topology: Topology, node: Callable[[], Node]) -> None:
        self._devices = devices
        self._topology = topology
        self._node = node
        self._admitted: dict[PodUID, fit.Amounts] = {}
        self._used: fit.Amounts = {}  # their sum, kept: there may be thousands of them
        self._ports: dict[PodUID, frozenset[Port]] = {}

    async def admit(self, pod: Pod, *, static: bool = False) -> Rejection | None:
        """Unavailable if it cannot be written down: then nothing was decided, try again. Static pods are meant for
        this node, whatever its taints."""
        async with self._devices.attempt(pod) as attempt:
            rejection = await self._topology.admit(pod, [attempt]) or self._check(pod)
            if rejection is None and not static:
                rejection = fit.repelled(pod, self._node())
            if rejection is not None:
                return rejection
            self.adopt(pod)  # before the next await: it has its place
            try:
                await attempt.commit()
            except BaseException:
                self.forget(pod.uid)
                raise
        return None

    def unknown(self, pod: Pod) -> tuple[ResourceName, ...]:
        """The extended resources that the pod asks for and this node has none of."""
        has = fit.amounts(self._node().status.allocatable)
        extended = [name for name in fit.requests(pod) if not names.extended_resource_name(name)]
        return tuple(name for name in extended if has.get(name, ZERO).is_zero)

    def adopt(self, pod: Pod) -> None:
        """Count a pod that was admitted, now or before."""
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
        """Two pods cannot have the same port of the host."""
        used = {port for uid, ports in self._ports.items() if uid != pod.uid for port in ports}
        return Rejection("NodePorts", _NO_PORTS) if host_ports.conflict(host_ports.of_pod(pod), used) else None
