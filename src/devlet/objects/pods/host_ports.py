"""Host ports: those that a pod wants, and conflicts between them. Pure.

The address 0.0.0.0 stands for all addresses of the node: a port there excludes the same port on every address.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from devlet.objects.types.container import ContainerPort
from devlet.objects.types.pod import Pod

__all__ = ["Port", "conflict", "of_pod"]

_EVERY_ADDRESS: Final = "0.0.0.0"


class Port(NamedTuple):
    address: str
    protocol: str
    number: int


def of_pod(pod: Pod) -> frozenset[Port]:
    """Return the ports of the containers that keep running; init containers have ended before these start."""
    containers = pod.spec.containers
    if pod.spec.init_containers:
        containers += tuple(container for container in pod.spec.init_containers if container.is_sidecar)
    return frozenset([_port(port) for each in containers if each.ports for port in each.ports if port.host_port > 0])


def conflict(wanted: Collection[Port], used: Collection[Port]) -> bool:
    """Return True if two of the ports exclude each other. Pods may have thousands, so do not compare them in pairs."""
    if not wanted or not used:
        return False
    taken: dict[tuple[int, str], set[str]] = {}
    for port in used:
        taken.setdefault((port.number, port.protocol), set()).add(port.address)
    return any(
        _EVERY_ADDRESS == one.address or not addresses.isdisjoint((one.address, _EVERY_ADDRESS))
        for one in wanted
        if (addresses := taken.get((one.number, one.protocol)))
    )


def _port(port: ContainerPort) -> Port:
    return Port(port.host_ip or _EVERY_ADDRESS, port.protocol or "TCP", port.host_port)
