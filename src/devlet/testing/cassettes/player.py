"""A cassette, served: each of its drivers and plugins on the sockets of a node, and its CDI specs in files.

The node may be a devlet or a kubelet: both have the same directories below their root.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskStatus
from msgspec.structs import replace

from devlet.cluster.client import Cluster, ListOptions, ObjectList
from devlet.errors import DevletError, InvalidInput
from devlet.kit import atomic_file
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.facts import facts
from devlet.kit.parts import running
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.runtime.cdi import codec, spec_dir
from devlet.runtime.cdi.spec import Spec
from devlet.runtime.cdi.versions import minimum
from devlet.sdk.device_plugin import PluginOptions
from devlet.sdk.dra_driver import DraOptions
from devlet.sdk.dra_services import DraService
from devlet.testing.cassettes import absent
from devlet.testing.cassettes.cassette import Cassette, Driver
from devlet.testing.cassettes.virtual_drivers import VirtualDriver, virtual_plugin

__all__ = ["Place", "play", "published"]

log = logging.getLogger(__name__)

_PREFIX = "devlet-play-"
_LOOK = 0.1  # seconds between two looks


@dataclass(frozen=True, slots=True)
class Place:
    """Where it is played. `root` is that of a devlet, or /var/lib/kubelet. `strict`: with nodes and files that this
    machine does not have."""

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
    """A part: ready when all sockets are served. InvalidInput if something on it cannot be served, InUse if a driver
    of that name runs there."""
    async with AsyncExitStack() as stack:
        stack.enter_context(_cdi_files(cassette.cdi, place))
        for driver in cassette.drivers:
            virtual = VirtualDriver(driver, place.node, strict=place.strict)
            await stack.enter_async_context(running(partial(virtual.run, _options(driver, place), cluster)))
        for plugin in cassette.plugins:
            served = virtual_plugin(plugin, strict=place.strict)
            options = PluginOptions(directory=place.root / "device-plugins")
            await stack.enter_async_context(running(partial(served.run, options)))
        task_status.started()
        await anyio.sleep_forever()


async def published(cassette: Cassette, node: str, cluster: Cluster, clock: Clock = SystemClock()) -> None:
    """Until the cluster has as many devices of each driver on this node as are on the cassette."""
    counts = {driver.name: sum(len(pool.devices) for pool in driver.pools) for driver in cassette.drivers}
    for name, count in counts.items():
        options = ListOptions(field_selector=f"spec.nodeName={node},spec.driver={name}")
        while _devices(await cluster.list(RESOURCE_SLICES, options=options)) < count:
            await clock.sleep(_LOOK)


def _devices(slices: ObjectList) -> int:
    return sum(len(each["spec"].get("devices") or ()) for each in slices.items)


def _options(driver: Driver, place: Place) -> DraOptions:
    """With the services that it had, as far as we have them."""
    services = tuple(service for service in DraService if service in driver.versions)
    return DraOptions(
        node_name=place.node,
        kubelet=place.root,
        cdi_directory=place.cdi_root,
        services=services or tuple(DraService),
    )


@contextmanager
def _cdi_files(specs: Sequence[Spec], place: Place) -> Iterator[None]:
    """There while the block runs. Devices that are in somebody else's file are left to that: in two files of a
    directory they could not be used at all."""
    files = [(place.cdi_root / f"{_PREFIX}{number}.json", spec) for number, spec in enumerate(specs)]
    taken = set(_names(place.cdi_root)) if specs else set()
    try:
        for path, spec in files:
            if left := _spec(spec, taken, strict=place.strict):
                _write(path, left)
                taken |= {f"{left.kind}={device.name}" for device in left.devices}
        yield
    finally:
        for path, _ in files:
            path.unlink(missing_ok=True)


def _write(path: Path, spec: Spec) -> None:
    try:
        path.parent.mkdir(0o755, parents=True, exist_ok=True)
        atomic_file.write(path, codec.encode(spec), 0o644, durable=False)
    except OSError as e:
        raise InvalidInput(f"{path} cannot be written: {e.strerror or e}") from e


def _spec(spec: Spec, taken: set[str], *, strict: bool) -> Spec | None:
    devices = []
    for device in spec.devices:
        edits = device.container_edits if strict else absent.present_edits(device.container_edits)
        if f"{spec.kind}={device.name}" in taken:
            log.warning("CDI device is there already", extra=facts(device=f"{spec.kind}={device.name}"))
        elif edits:
            devices.append(replace(device, container_edits=edits))
    if not devices:
        return None
    shared = spec.container_edits if strict else absent.present_edits(spec.container_edits)
    left = replace(spec, devices=tuple(devices), container_edits=shared)
    return replace(left, cdi_version=minimum(left))


def _names(directory: Path) -> Iterator[str]:
    """Of devices in files that are not ours."""
    for path in spec_dir.list_files(directory):
        if path.name.startswith(_PREFIX):
            continue
        try:
            spec = spec_dir.read(path)[1]
        except DevletError:
            continue  # the node says what is wrong with it
        yield from (f"{spec.kind}={device.name}" for device in spec.devices)
