"""The resources that a node already has. A device plugin cannot be asked, and its socket may have any name."""

from collections.abc import Set
from pathlib import Path
from typing import Final

from devlet.cluster.client import Cluster
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.connection import Connection
from devlet.kit.clock import Clock, SystemClock
from devlet.node.devices.records import PluginState
from devlet.objects.kinds import NODES, VIEWS_GROUP, Kind, Resource
from devlet.objects.values.quantity import Quantity

__all__ = ["STATUS_LATE", "offered"]

STATUS_LATE: Final = 15.0  # seconds; a kubelet writes its status every 10
_POLL: Final = 1.0  # seconds between two polls
_SOCKET: Final = "devlet.sock"
_API_VERSION: Final = f"{VIEWS_GROUP}/v1alpha1"
_PLUGINS: Final = Resource(Kind("Plugin", "plugins", (_API_VERSION,), namespaced=False), _API_VERSION)
_GONE: Final = (PluginState.DISCONNECTED, PluginState.AWAITED)


async def offered(
    resources: Set[str], root: Path, node: str, cluster: Cluster, clock: Clock = SystemClock()
) -> Set[str]:
    """Return which of the resources are already served on the node.

    A devlet is asked directly. For a kubelet, the status of its node is polled as long as it may be out of date."""
    if not resources:
        return set()
    if (root / _SOCKET).exists():
        return resources & await _running(root)
    deadline = clock.monotonic() + STATUS_LATE
    while (found := resources & await _allocatable(node, cluster)) and clock.monotonic() < deadline:
        await clock.sleep(_POLL)
    return found


async def _running(root: Path) -> set[str]:
    async with connected(Connection("http://localhost", root / _SOCKET)) as node:
        views = await node.list(_PLUGINS)
    return {each["spec"]["resource"] for each in views.items if each["status"]["state"] not in _GONE}


async def _allocatable(node: str, cluster: Cluster) -> set[str]:
    status = (await cluster.get(NODES, node)).get("status") or {}
    amounts = status.get("allocatable") or {}
    return {resource for resource, amount in amounts.items() if Quantity.parse(amount) > Quantity.parse("0")}
