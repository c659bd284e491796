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
from devlet.sdk.cdi_files import CdiFiles
from devlet.sdk.claim_desk import ClaimDesk
from devlet.sdk.claim_reader import ClaimReader
from devlet.sdk.dra_services import DraService, dra_methods
from devlet.sdk.exclusion import LOCK_NAME, Exclusion
from devlet.sdk.feed import follow
from devlet.sdk.health import HEALTH_SERVICES, HealthService
from devlet.sdk.metadata_files import MetadataFiles
from devlet.sdk.registrar import DRA_PLUGIN, Registrar
from devlet.sdk.server import Limits, SocketServer
from devlet.sdk.slices.controller import SlicePublisher
from devlet.sdk.values import Claim, ClaimRef, Device, DeviceHealth, Pool, Prepared

__all__ = ["DraDriver", "DraOptions"]

log = logging.getLogger(__name__)

KUBELET: Final = Path("/var/lib/kubelet")
CDI: Final = Path("/var/run/cdi")

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
        return (self.registry or self.kubelet / "plugins_registry") / f"{driver}{self._suffix}-reg.sock"

    def data(self, driver: str) -> Path:
        return self.directory or self.kubelet / "plugins" / driver

    def service_socket(self, driver: str) -> Path:
        return self.data(driver) / f"dra{self._suffix}.sock"

    @property
    def _suffix(self) -> str:
        return f"-{self.instance}" if self.instance else ""


class DraDriver:
    """Give it a `name`, and write `devices` and `prepare`; the other methods may stay as they are."""

    name: str = ""

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
        await self.setup(options)
        life = _Life(self, options, cluster, clock)
        async with AsyncExitStack() as stack:
            if _has(self, "devices"):
                await stack.enter_async_context(running(life.publish))
            if _has(self, "health"):
                await stack.enter_async_context(running(life.tell_health))
            await stack.enter_async_context(running(life.service.run))
            await stack.enter_async_context(running(life.registration.run))
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
        self._node = options.node_name
        self._clock = clock
        self._publisher = SlicePublisher(cluster, driver.name, options.node_name, driver.error, clock)
        self._health = HealthService()
        desk = _desk(driver, options, cluster)
        methods = [dra_methods(each, desk.prepare, desk.unprepare) for each in options.services]
        versions: list[str] = list(options.services)
        if _has(driver, "health"):
            methods.append(self._health.methods)
            versions += HEALTH_SERVICES
        socket = options.service_socket(driver.name)
        self.service = SocketServer(socket, methods, options.limits)
        # A kubelet that starts deletes the slices of all drivers, and then registers those that are there.
        self.registrar = Registrar(DRA_PLUGIN, driver.name, str(socket), versions, self._publisher.look_again)
        self.registration = SocketServer(options.registry_socket(driver.name), [self.registrar.methods], options.limits)

    async def publish(self, *, task_status: TaskStatus[None]) -> None:
        async with running(self._publisher.run):
            task_status.started()
            await follow(self._driver.devices, self._take, self._reporter("devices not published"), self._clock)
            await anyio.sleep_forever()

    def _take(self, devices: Devices) -> None:
        pools = devices if isinstance(devices, Mapping) else {self._node: Pool(tuple(devices))}
        self._publisher.publish(pools)

    async def tell_health(self, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        await follow(self._driver.health, self._health.show, self._reporter("health not told"), self._clock)
        await anyio.sleep_forever()

    def _reporter(self, doing: str) -> Callable[[Exception], None]:
        return lambda error: self._driver.error(error, doing)


def _desk(driver: DraDriver, options: DraOptions, cluster: Cluster) -> ClaimDesk:
    """Instances of a driver take turns by a file that all of them have; a single one needs none."""
    name, data, cdi = driver.name, options.data(driver.name), options.cdi_directory
    turns = Exclusion(data / LOCK_NAME if options.instance else None) if options.serialize else None
    metadata = MetadataFiles(name, data, cdi, options.metadata) if options.metadata else None
    return ClaimDesk(driver, ClaimReader(cluster, name), CdiFiles(cdi, name), turns, metadata)


def _has(driver: DraDriver, method: str) -> bool:
    """Whether the author wrote it."""
    return getattr(type(driver), method) is not getattr(DraDriver, method)


def _check(driver: DraDriver, options: DraOptions) -> None:
    if problems := names.driver_name(driver.name):
        raise InvalidInput(f"{type(driver).__name__}: {driver.name!r} cannot be the name of a driver: {problems[0]}")
    if driver.name != driver.name.lower():
        raise InvalidInput(f"{type(driver).__name__}: the name {driver.name!r} must be in lower case")
    if not options.node_name:
        raise InvalidInput(f"driver {driver.name}: the name of the node is needed: set NODE_NAME or --node-name")
    if not options.services:
        raise InvalidInput(f"driver {driver.name}: at least one service has to be advertised")
