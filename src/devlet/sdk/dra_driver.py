"""The base class of DRA drivers, which publish devices and prepare them for claims.

    class Leds(DraDriver):
        name = "led.example.com"

        async def devices(self):
            yield [Device("red", {"color": "red"}), Device("green", {"color": "green"})]

        async def prepare(self, claim):
            return [Prepared(result, env={"LED": result.device}) for result in claim.results]

A node asks for the same claim again, for example after a restart, and expects the same answer. So `prepare` and
`unprepare` must be idempotent. They may be called in another process than before, so everything that they need must be
on disk or in the claim.

    devices() ──▶ slices of the API          node ──▶ registration socket: which driver is this?
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
from devlet.sdk.claim_preparer import ClaimPreparer
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

_SILENCE = "devices() has not yielded a list yet: nothing is published before the first one"
_POD_UID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

Devices = Sequence[Device] | Mapping[str, Pool]
"""The devices of one pool that has the name of the node, or pools by name."""


@dataclass(frozen=True, slots=True)
class DraOptions:
    """Where a driver has its sockets and files. The defaults are the directories of a host with a kubelet.

    `instance` is the pod's UID if several instances of the driver run on the node, as in a rolling update. The
    instances share their files and prepare claims one after the other. `services` are in the order in which they are
    advertised.
    """

    node_name: str
    kubelet: Path = KUBELET
    registry: Path | None = None  # kubelet/plugins_registry
    directory: Path | None = None  # kubelet/plugins/<driver>
    cdi_directory: Path = CDI
    instance: str = ""
    serialize: bool = True
    services: tuple[DraService, ...] = (DraService.V1, DraService.V1BETA1)
    metadata: tuple[str, ...] = ()  # versions in which containers can read metadata of their devices
    limits: Limits = field(default=Limits())

    def registry_socket(self, driver: str) -> Path:
        """Return the path of the socket by which the node finds the driver."""
        return self._registry / f"{driver}{self._suffix}-reg.sock"

    def data(self, driver: str) -> Path:
        """Return the driver's own directory, which all its instances on the node share."""
        return (self.directory or self.kubelet / "plugins" / driver).absolute()

    def service_socket(self, driver: str) -> Path:
        """Return the path of the socket on which the node calls the driver."""
        return self.data(driver) / f"dra{self._suffix}.sock"

    def sockets_of_instances(self, driver: str) -> list[Path]:
        """Return the sockets of all instances that are named by a pod's UID, whether they still run or not."""
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
    """The base class of DRA drivers. Set a `name` and implement `devices` and `prepare`; the rest is optional.

    `parameters` is the type of the opaque parameters in claims and classes (see `Claim.parameters_for`), such as a
    msgspec Struct, or dict to accept all. Other parameters are refused; by default, all are. An `exclusive` driver
    refuses a device that another claim has, whatever the scheduler decided, unless the device is shared or the access
    is admin access. `single_pool` is for devices that several nodes can use: the driver then has only the pool of that
    name, whose `node_selector` or `all_nodes` selects the nodes."""

    name: str = ""
    single_pool: str = ""
    parameters: type | None = None
    exclusive: bool = True

    _metadata: MetadataFiles | None = None  # while the driver runs with device metadata enabled

    def devices(self) -> AsyncIterator[Devices]:
        """Yield all devices, and again all devices whenever any of them changed. When the generator ends, the last list
        stays published. Without this method the driver publishes nothing: another program has to."""
        raise NotImplementedError

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        """Make the claim's devices ready. The user of the pod sees an exception's text, and the node tries again."""
        raise NotImplementedError(f"{type(self).__name__} has no method prepare")

    async def unprepare(self, claim: ClaimRef) -> None:
        """Undo what `prepare` did. The SDK removes the CDI file afterwards. Succeed for a claim that is not known."""

    def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        """Yield the health of all devices, and again whenever it changed. Without this method none is reported."""
        raise NotImplementedError

    async def update_metadata(self, claim: ClaimRef, prepared: Sequence[Prepared]) -> None:
        """Replace the metadata of prepared devices, for example to add an address that became known later.

        The driver calls this method, with all devices of each request; running containers see the new metadata. It does
        nothing unless device metadata is enabled. Raise NotFound if a request is not prepared. Do not call it while
        `prepare` runs for the claim: what `prepare` returns counts."""
        if self._metadata is not None:
            await anyio.to_thread.run_sync(self._metadata.update_all, claim, prepared)

    def error(self, error: Exception, doing: str) -> None:
        """Handle an error in the background. By default it is logged. The work is retried where that makes sense."""
        known = isinstance(error, DevletError)
        log.error(doing, extra=facts(driver=self.name, err=error), exc_info=None if known else error)

    async def setup(self, options: DraOptions) -> None:
        """Prepare to run; called once, before the other methods. `options.node_name` is the name of the node, and
        `options.data(self.name)` is the driver's own directory."""

    # As a program

    def arguments(self, parser: ArgumentParser) -> None:
        """Add flags to those of every driver."""

    def configure(self, arguments: Namespace) -> None:
        """Read the flags. Raise `InvalidInput` for values that are not valid."""

    # What runs

    async def run(
        self,
        options: DraOptions,
        cluster: Cluster,
        clock: Clock = SystemClock(),
        *,
        task_status: TaskStatus[Registrar] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until cancelled. `task_status` is started with the `Registrar` as soon as nodes can find the driver."""
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
        """Run the driver as a program; see --help."""
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
        preparer = _preparer(driver, options, cluster)
        methods = [dra_methods(each, preparer.prepare, preparer.unprepare) for each in options.services]
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
        """Start the service before the registration, and stop it first: a node that finds no registration cancels its
        calls."""
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
        await follow(self._driver.health, self._show_health, self._reporter("health not reported"), self._clock)
        await anyio.sleep_forever()

    def _show_health(self, reports: Sequence[DeviceHealth]) -> None:
        self._health.show(reports)
        if (published := self._publisher.devices) is None:
            return
        for each in self._health.board.value or ():
            if (device := (each.pool, each.device)) not in published and device not in self._strange:
                self._strange.add(device)
                named = facts(driver=self._driver.name, device="/".join(device))
                log.warning("health() names a device that is not published: check its pool and name", extra=named)

    async def tidy(self, *, task_status: TaskStatus[None]) -> None:
        """Remove the sockets of killed instances: no later instance has the same name."""
        task_status.started()
        await sweep(self._options.sockets_of_instances(self._driver.name), self._clock)

    def _reporter(self, doing: str) -> Callable[[Exception], None]:
        return lambda error: heard(self._driver.error)(error, doing)


def _pools(devices: object, name: str) -> Mapping[str, Pool]:
    """Return the devices as pools. Their content is checked when they are published."""
    if isinstance(devices, Mapping):
        return devices
    return {name: Pool(listed(devices, "devices()", "Device, or pools by name"))}


def _metadata_files(driver: str, options: DraOptions) -> MetadataFiles:
    return MetadataFiles(driver, options.data(driver), options.cdi_directory, options.metadata)


def _preparer(driver: DraDriver, options: DraOptions, cluster: Cluster) -> ClaimPreparer:
    """Instances of a driver exclude each other by a common file; a single instance does not need it."""
    name, data, cdi = driver.name, options.data(driver.name), options.cdi_directory
    exclusion = Exclusion(data / LOCK_NAME if options.instance else None) if options.serialize else None
    holders = Holders(data / "held") if driver.exclusive else None
    reader, files = ClaimReader(cluster, name, options.node_name), CdiFiles(cdi, name)
    return ClaimPreparer(driver, reader, files, exclusion, driver._metadata, holders, driver.parameters)


def _has(driver: DraDriver, method: str) -> bool:
    """Return True if the author implemented the method."""
    return getattr(type(driver), method) is not getattr(DraDriver, method)


def _check(driver: DraDriver, options: DraOptions) -> None:
    if not driver.name or not isinstance(driver.name, str):
        raise InvalidInput(f'{type(driver).__name__} has no name: set name = "gpu.example.com"')
    if problems := names.driver_name(driver.name):
        raise InvalidInput(f"{type(driver).__name__}: {driver.name!r} cannot be the name of a driver: {problems[0]}")
    if driver.name != driver.name.lower():
        raise InvalidInput(f"{type(driver).__name__}: the name {driver.name!r} must be in lower case")
    if options.instance and not re.fullmatch(file_names.UID, options.instance):
        raise InvalidInput(f"{options.instance!r} cannot name an instance of {driver.name}: use the pod's UID")
    if not options.node_name:
        raise InvalidInput(f"driver {driver.name}: the name of the node is needed: set NODE_NAME or --node-name")
    if not options.services:
        raise InvalidInput(f"driver {driver.name}: at least one service has to be advertised")
