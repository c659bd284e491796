"""Plays a cassette: its drivers and plugins on the sockets of a node, and its CDI specs in files.

The node may be a devlet or a kubelet, which have the same directories below their root. In the end everything is
removed except for what prepared claims need. A real driver keeps its slices, because it comes back after an update.
"""

import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Set
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus

from devlet.cassettes.cassette import Cassette, Driver, Plugin
from devlet.cassettes.offered import offered
from devlet.cassettes.spec_files import spec_files
from devlet.cassettes.virtual_drivers import virtual_driver, virtual_plugin
from devlet.cluster.client import Cluster
from devlet.errors import Conflict, DevletError, InUse, NotFound
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.facts import facts
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.plugins import registration_client
from devlet.plugins.devices import ID_LENGTH
from devlet.plugins.registration_client import connected_client
from devlet.sdk.device_plugin import PluginOptions
from devlet.sdk.dra_driver import DraOptions
from devlet.sdk.dra_services import DraService
from devlet.sdk.registrar import DRA_PLUGIN
from devlet.sdk.slices.served_slices import ServedSlices

__all__ = ["Place", "play", "published"]

log = logging.getLogger(__name__)

_POLL = 0.1  # seconds between two polls
_ASK = registration_client.Settings(dial=1.0, get_info=1.0)
_REMOVE_TIMEOUT = 5.0  # seconds
_STOP_IT = "stop it, or play the cassette on another node"

Part = Callable[..., Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cassette is played. `root` is that of a devlet, or /var/lib/kubelet. With `strict`, nodes and files that
    this machine does not have are included."""

    node: str
    root: Path
    cdi_root: Path
    strict: bool = False


async def play(
    cassette: Cassette,
    place: Place,
    cluster: Cluster,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Play a cassette; ready once all sockets are served.

    Raises InvalidInput if part of it cannot be served, and InUse if one of its drivers or plugins already runs there.
    """
    await _check_absent({driver.name for driver in cassette.drivers}, place.root / "plugins_registry")
    await _check_not_offered({plugin.resource for plugin in cassette.plugins}, place, cluster)
    async with AsyncExitStack() as stack:
        stack.enter_context(spec_files(cassette.cdi, place.cdi_root, strict=place.strict))
        for driver in cassette.drivers:
            await stack.enter_async_context(_driver(driver, place, cluster))
        for plugin in cassette.plugins:
            await stack.enter_async_context(_plugin(plugin, place))
        task_status.started()
        await anyio.sleep_forever()


@asynccontextmanager
async def _driver(driver: Driver, place: Place, cluster: Cluster) -> AsyncIterator[None]:
    options = _options(driver, place)
    virtual = virtual_driver(driver, place.node, strict=place.strict)
    was_served = False
    try:
        async with _serving(partial(virtual.run, options, cluster), f"driver {driver.name}"):
            was_served = True
            yield
    finally:
        if was_served:
            with anyio.move_on_after(_REMOVE_TIMEOUT, shield=True):
                await _remove_slices(driver.name, place.node, cluster)
            with suppress(OSError):
                options.data(driver.name).rmdir()


def _plugin(plugin: Plugin, place: Place) -> AbstractAsyncContextManager[None]:
    served = virtual_plugin(plugin, strict=place.strict)
    options = PluginOptions(directory=place.root / "device-plugins", id_length=ID_LENGTH)
    return _serving(partial(served.run, options), f"device plugin {plugin.resource}")


@asynccontextmanager
async def _serving(part: Part, what: str) -> AsyncIterator[None]:
    try:
        async with running(part):
            yield
    except* InUse as e:
        raise InUse(f"{what} runs on this node already: {_STOP_IT} ({_first(e)})") from e


def _first(group: BaseExceptionGroup[InUse]) -> InUse:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


async def _check_absent(names: Set[str], registry: Path) -> None:
    """Raise InUse if one of the drivers runs: its sockets may have any name, and both would write the same slices."""
    for socket in _sockets(registry):
        if (name := await _driver_on(socket)) in names:
            raise InUse(f"driver {name} runs on this node already: {_STOP_IT} ({socket})")


def _sockets(registry: Path) -> list[Path]:
    return sorted(registry.glob("*.sock"))


async def _driver_on(socket: Path) -> str:
    try:
        async with connected_client(socket, _ASK) as client:
            found = await client.info()
    except DevletError:
        return ""  # there is no driver on this socket
    return found.name if found.type == DRA_PLUGIN else ""


async def _check_not_offered(resources: Set[str], place: Place, cluster: Cluster) -> None:
    """Raise InUse if a resource is served, because the node would use only the newest plugin of a resource."""
    for resource in sorted(await offered(resources, place.root, place.node, cluster)):
        raise InUse(f"device plugin {resource} runs on this node already: {_STOP_IT}")


async def _remove_slices(driver: str, node: str, cluster: Cluster) -> None:
    slices = _slices(driver, node, cluster)
    try:
        for each in await slices.list():
            with suppress(NotFound, Conflict):  # another driver uses it now
                await slices.delete(each)
    except DevletError as e:
        log.warning("slices not removed, left to the node", extra=facts(driver=driver, err=e))


async def published(cassette: Cassette, node: str, cluster: Cluster, clock: Clock = SystemClock()) -> None:
    """Wait until the cluster has as many devices of each driver on this node as the cassette has."""
    counts = {driver.name: sum(len(pool.devices) for pool in driver.pools) for driver in cassette.drivers}
    for name, count in counts.items():
        slices = _slices(name, node, cluster)
        while _devices(await slices.list()) < count:
            await clock.sleep(_POLL)


def _slices(driver: str, node: str, cluster: Cluster) -> ServedSlices:
    return ServedSlices(cluster, f"spec.nodeName={node},spec.driver={driver}")


def _devices(slices: Iterable[Document]) -> int:
    return sum(len(each["spec"].get("devices") or ()) for each in slices)


def _options(driver: Driver, place: Place) -> DraOptions:
    """Return options with the recorded services, as far as devlet implements them."""
    services = tuple(service for service in DraService if service in driver.versions)
    return DraOptions(
        node_name=place.node,
        kubelet=place.root,
        cdi_directory=place.cdi_root,
        services=services or tuple(DraService),
    )
