"""A DRA driver: a name, devices, and what to do with a claim that got some of them.

    class Leds(DraDriver):
        name = "led.example.com"

        async def devices(self):
            yield [Device("red", {"color": "red"}), Device("green", {"color": "green"})]

        async def prepare(self, claim):
            return [Prepared(result, env={"LED": result.device}) for result in claim.results]

Nodes ask for the same claim again, after a restart for instance, and expect the same answer: `prepare` and `unprepare`
must bear being repeated. They may be called in another process than before, so what they have to know is on disk, or
in the claim.

    devices() ──▶ slices of the API          node ──▶ registration socket: who are you?
    prepare() ◀── claims of the API    ◀──── node ──▶ service socket: prepare, unprepare, health
"""

import logging
import re
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster
from devlet.errors import DevletError, InvalidInput
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.facts import facts
from devlet.kit.parts import running
from devlet.objects import names
from devlet.sdk import file_names
from devlet.sdk.cdi_files import CdiFiles
from devlet.sdk.claim_desk import ClaimDesk
from devlet.sdk.claim_reader import ClaimReader
from devlet.sdk.dead_sockets import sweep
from devlet.sdk.dra_services import DraService, dra_methods
from devlet.sdk.exclusion import LOCK_NAME, Exclusion
from devlet.sdk.feed import follow
from devlet.sdk.health import HEALTH_SERVICES, HealthService
from devlet.sdk.holders import Holders
from devlet.sdk.metadata_files import MetadataFiles
from devlet.sdk.mistakes import heard, listed
from devlet.sdk.registrar import DRA_PLUGIN, Registrar
from devlet.sdk.server import Limits, SocketServer
from devlet.sdk.slices.controller import SlicePublisher
from devlet.sdk.values import Claim, ClaimRef, Device, DeviceHealth, Pool, Prepared

__all__ = ["DraDriver", "DraOptions"]

log = logging.getLogger(__name__)

KUBELET: Final = Path("/var/lib/kubelet")
CDI: Final = Path("/var/run/cdi")

_SILENCE = "devices() has said nothing yet: nothing is published before its first list"
_POD_UID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

Devices = Sequence[Device] | Mapping[str, Pool]
"""Devices of one pool that is named after the node, or pools by their names."""


@dataclass(frozen=True, slots=True)
class DraOptions:
    """Where a driver has its sockets and files. Directories are those of the kubelet's host unless they are given.

    `instance` tells several instances of one driver on one node apart, as in a rolling update: the pod's UID. They
    share what is on disk, and take turns. `services` are in the order in which they are advertised."""

    node_name: str
    kubelet: Path = KUBELET
    registry: Path | None = None  # kubelet/plugins_registry
    directory: Path | None = None  # kubelet/plugins/<driver>
    cdi_directory: Path = CDI
    instance: str = ""
    serialize: bool = True
    services: tuple[DraService, ...] = (DraService.V1, DraService.V1BETA1)
    metadata: tuple[str, ...] = ()  # versions in which containers find metadata of their devices
    limits: Limits = field(default=Limits())

    def registry_socket(self, driver: str) -> Path:
        """Where the node finds the driver."""
        return self._registry / f"{driver}{self._suffix}-reg.sock"

    def data(self, driver: str) -> Path:
        """The driver's own directory, shared by all its instances on the node."""
        return (self.directory or self.kubelet / "plugins" / driver).absolute()

    def service_socket(self, driver: str) -> Path:
        """Where the node calls the driver."""
        return self.data(driver) / f"dra{self._suffix}.sock"

    def sockets_of_instances(self, driver: str) -> list[Path]:
        """Of all that have a pod's UID for a name, living or dead."""
        return [
            *_matching(self._registry, rf"{re.escape(driver)}-{_POD_UID}-reg\.sock"),
            *_matching(self.data(driver), rf"dra-{_POD_UID}\.sock"),
        ]

    @property
    def _registry(self) -> Path:
        return self.registry or self.kubelet / "plugins_registry"

    @property
    def _suffix(self) -> str:
        return f"-{self.instance}" if self.instance else ""


def _matching(directory: Path, pattern: str) -> list[Path]:
    found = directory.iterdir() if directory.is_dir() else ()
    return [each for each in found if re.fullmatch(pattern, each.name)]


class DraDriver:
    """Give it a `name`, and write `devices` and `prepare`; the other methods may stay as they are.

    `parameters` is the type of what claims and classes may say to it (see `Claim.parameters_for`), such as a msgspec
    Struct, or dict for anything. Others are refused; by default, all. While it is `exclusive`, a device that one claim
    has is refused to others, whatever a scheduler says, but for shares and admin access. `single_pool` is for devices
    that several nodes reach: the driver then has only the pool of that name, which says itself on which nodes it is, by
    its `node_selector` or `all_nodes`."""

    name: str = ""
    single_pool: str = ""
    parameters: type | None = None
    exclusive: bool = True

    _metadata: MetadataFiles | None = None  # while it runs, and they are switched on

    def devices(self) -> AsyncIterator[Devices]:
        """What there is, whole, and again whenever it changed. A generator that ends has said its last word. Without
        this method nothing is published: somebody else does it."""
        raise NotImplementedError

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        """Make the claim's devices ready. An exception is what the pod's user is told, and it is tried again."""
        raise NotImplementedError(f"{type(self).__name__} has no method prepare")

    async def unprepare(self, claim: ClaimRef) -> None:
        """Take back what `prepare` did; the CDI file is removed afterwards. A claim that nobody knows is a success."""

    def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        """How all devices are, and again whenever that changed. Without this method nothing is said about it."""
        raise NotImplementedError

    async def update_metadata(self, claim: ClaimRef, prepared: Sequence[Prepared]) -> None:
        """For the author to call: say anew what containers may read of devices that are prepared, such as an address
        that came later; containers that run see it. All devices of a request are said anew together. Nothing is done
        unless device metadata are switched on; NotFound if a request is not prepared. Not while `prepare` is at work on
        the claim: what it returns counts then."""
        if self._metadata is not None:
            await anyio.to_thread.run_sync(self._metadata.update_all, claim, prepared)

    def error(self, error: Exception, doing: str) -> None:
        """Something went wrong in the background; it is tried again where that makes sense."""
        known = isinstance(error, DevletError)
        log.error(doing, extra=facts(driver=self.name, err=error), exc_info=None if known else error)

    async def setup(self, options: DraOptions) -> None:
        """Once, before anything else is asked: the node's name is `options.node_name`, and a directory for its own
        files `options.data(self.name)`."""

    # As a program

    def arguments(self, parser: ArgumentParser) -> None:
        """Add flags of its own to those of every driver."""

    def configure(self, arguments: Namespace) -> None:
        """Take over what the flags say; `InvalidInput` for what cannot be."""

    # What runs

    async def run(
        self,
        options: DraOptions,
        cluster: Cluster,
        clock: Clock = SystemClock(),
        *,
        task_status: TaskStatus[Registrar] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until cancelled; ready when nodes can find it. The value is the `Registrar`, which hears of them."""
        _check(self, options)
        self._metadata = _metadata_files(self.name, options) if options.metadata else None
        await self.setup(options)
        life = _Life(self, options, cluster, clock)
        async with AsyncExitStack() as stack:
            if _has(self, "devices"):
                await stack.enter_async_context(running(life.publish))
            if _has(self, "health"):
                await stack.enter_async_context(running(life.tell_health))
            await stack.enter_async_context(running(life.serve))
            await stack.enter_async_context(running(life.tidy))
            task_status.started(life.registrar)
            await anyio.sleep_forever()

    def main(self, argv: Sequence[str] | None = None) -> None:
        """As a program: see --help."""
        from devlet.sdk.program import run_driver

        run_driver(self, argv)


class _Life:
    """A driver while it runs."""

    def __init__(self, driver: DraDriver, options: DraOptions, cluster: Cluster, clock: Clock) -> None:
        self._driver = driver
        self._pool = driver.single_pool or options.node_name
        self._clock = clock
        self._options = options
        self._publisher = SlicePublisher(
            cluster, driver.name, options.node_name, heard(driver.error), clock, single_pool=driver.single_pool
        )
        self._health = HealthService()
        self._strange: set[tuple[str, str]] = set()  # devices with a health that are not published
        desk = _desk(driver, options, cluster)
        methods = [dra_methods(each, desk.prepare, desk.unprepare) for each in options.services]
        versions: list[str] = list(options.services)
        if _has(driver, "health"):
            methods.append(self._health.methods)
            versions += HEALTH_SERVICES
        socket = options.service_socket(driver.name)
        self._service = SocketServer(socket, methods, options.limits)
        # A kubelet that starts deletes the slices of all drivers, and then registers those that are there.
        self.registrar = Registrar(DRA_PLUGIN, driver.name, str(socket), versions, self._publisher.look_again)
        self._registration = SocketServer(
            options.registry_socket(driver.name), [self.registrar.methods], options.limits
        )

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        """The service comes first, and goes first: a node hangs up on calls under way when it finds no registration."""
        stays = anyio.CancelScope(shield=True)
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._serve, stays)
            await tasks.start(self._register, stays)
            task_status.started()

    async def _serve(self, registration: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
        try:
            await self._service.run(task_status=task_status)
        finally:
            registration.cancel()

    async def _register(self, scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
        with scope:
            await self._registration.run(task_status=task_status)

    async def publish(self, *, task_status: TaskStatus[None]) -> None:
        async with running(self._publisher.run):
            task_status.started()
            report = self._reporter("devices not published")
            await follow(self._driver.devices, self._take, report, self._clock, silence=_SILENCE)
            await anyio.sleep_forever()

    def _take(self, devices: Devices) -> None:
        self._publisher.publish(_pools(devices, self._pool))

    async def tell_health(self, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        await follow(self._driver.health, self._show_health, self._reporter("health not told"), self._clock)
        await anyio.sleep_forever()

    def _show_health(self, reports: Sequence[DeviceHealth]) -> None:
        self._health.show(reports)
        if (published := self._publisher.devices) is None:
            return
        for each in self._health.board.value or ():
            if (device := (each.pool, each.device)) not in published and device not in self._strange:
                self._strange.add(device)
                told = facts(driver=self._driver.name, device="/".join(device))
                log.warning("health() names a device that is not published: check its pool and name", extra=told)

    async def tidy(self, *, task_status: TaskStatus[None]) -> None:
        """Instances that were killed leave sockets behind that no other instance has the name of."""
        task_status.started()
        await sweep(self._options.sockets_of_instances(self._driver.name), self._clock)

    def _reporter(self, doing: str) -> Callable[[Exception], None]:
        return lambda error: heard(self._driver.error)(error, doing)


def _pools(devices: object, name: str) -> Mapping[str, Pool]:
    """What is in them is checked where they are published."""
    if isinstance(devices, Mapping):
        return devices
    return {name: Pool(listed(devices, "devices()", "Device, or pools by name"))}


def _metadata_files(driver: str, options: DraOptions) -> MetadataFiles:
    return MetadataFiles(driver, options.data(driver), options.cdi_directory, options.metadata)


def _desk(driver: DraDriver, options: DraOptions, cluster: Cluster) -> ClaimDesk:
    """Instances of a driver take turns by a file that all of them have; a single one needs none."""
    name, data, cdi = driver.name, options.data(driver.name), options.cdi_directory
    turns = Exclusion(data / LOCK_NAME if options.instance else None) if options.serialize else None
    holders = Holders(data / "held") if driver.exclusive else None
    reader, files = ClaimReader(cluster, name, options.node_name), CdiFiles(cdi, name)
    return ClaimDesk(driver, reader, files, turns, driver._metadata, holders, driver.parameters)


def _has(driver: DraDriver, method: str) -> bool:
    """Whether the author wrote it."""
    return getattr(type(driver), method) is not getattr(DraDriver, method)


def _check(driver: DraDriver, options: DraOptions) -> None:
    if not driver.name or not isinstance(driver.name, str):
        raise InvalidInput(f'{type(driver).__name__} has no name: set name = "gpu.example.com"')
    if problems := names.driver_name(driver.name):
        raise InvalidInput(f"{type(driver).__name__}: {driver.name!r} cannot be the name of a driver: {problems[0]}")
    if driver.name != driver.name.lower():
        raise InvalidInput(f"{type(driver).__name__}: the name {driver.name!r} must be in lower case")
    if options.instance and not re.fullmatch(file_names.UID, options.instance):
        told = f"cannot tell instances of {driver.name} apart: use the pod's UID"
        raise InvalidInput(f"{options.instance!r} {told}")
    if not options.node_name:
        raise InvalidInput(f"driver {driver.name}: the name of the node is needed: set NODE_NAME or --node-name")
    if not options.services:
        raise InvalidInput(f"driver {driver.name}: at least one service has to be advertised")
