"""The registered DRA drivers: every instance, in the order of registration, and which of them is called.

The watcher of the registry directory registers and deregisters them. Whether an instance is connected is independent of
that: the registrar and the service of a driver may be two processes, and each may restart alone. An instance whose
service is not available stays registered and is dialled continuously.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup, TaskStatus

from devlet.errors import InvalidInput, PluginUnavailable, Unavailable
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects import names
from devlet.objects.identifiers import DriverName
from devlet.plugins import dra_services, endpoints
from devlet.plugins.dra import DriverRecord, Service
from devlet.plugins.dra_driver import DraDriver, Offer, Settings

__all__ = ["TYPE", "DraRegistry"]

log = logging.getLogger(__name__)

TYPE = "DRAPlugin"  # the type that plugins report

Observe = Callable[[DriverName, str, str, float], None]


@dataclass(frozen=True, slots=True, eq=False)
class _Instance:
    driver: DraDriver
    scope: CancelScope = field(default_factory=CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class DraRegistry:
    """A `devlet.plugins.registration.Handler`. `legacy` has the API versions of drivers that do not advertise theirs.
    `observe` is called after each unary call: driver, method path, gRPC code as Go spells it, seconds."""

    def __init__(
        self,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        legacy: Mapping[DriverName, Service] = MappingProxyType({}),
        observe: Observe = lambda driver, method, code, seconds: None,
    ) -> None:
        self._changes = Changes()
        self._clock = clock
        self._settings = settings
        self._legacy = legacy
        self._observe = observe
        self._instances: list[_Instance] = []
        self._tasks: TaskGroup | None = None

    @property
    def version(self) -> int:
        """A number that grows whenever an instance is registered, deregistered, connected or lost."""
        return self._changes.version

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled, then close all connections. Drivers can be registered while it runs."""
        try:
            async with anyio.create_task_group() as self._tasks:
                task_status.started()
                await anyio.sleep_forever()
        finally:
            self._tasks = None
            self._instances.clear()

    def validate(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        self._offer(name, endpoint, versions)

    async def register(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        """Register an instance. Its service need not be available yet."""
        offer = self._offer(name, endpoint, versions)
        if self._found(name, endpoint):
            raise InvalidInput(f"DRA driver {name}: endpoint {endpoint} already registered")
        if self._tasks is None:
            raise Unavailable(f"DRA driver {name} cannot be registered: devlet is starting or stopping")
        observe = partial(self._observe, offer.driver)
        driver = DraDriver(offer, self._clock, self._settings, on_change=self._changes.notify, observe=observe)
        instance = _Instance(driver)
        self._instances.append(instance)
        self._tasks.start_soon(self._keep, instance)
        log.info("DRA driver registered", extra=facts(driver=name, socket=endpoint, service=driver.service))
        self._changes.notify()

    async def deregister(self, name: str, endpoint: Path) -> None:
        """Deregister an instance and close its connection. Do nothing if it is not registered."""
        if (instance := self._found(name, endpoint)) is None:
            return
        self._instances.remove(instance)
        instance.scope.cancel()
        log.info("DRA driver deregistered", extra=facts(driver=name, socket=endpoint))
        self._changes.notify()
        await instance.ended.wait()

    def pick(self, name: DriverName) -> DraDriver:
        """Return the instance to call: the newest connected one, or else the newest. Call this before each call."""
        if not name:
            raise PluginUnavailable(name, "driver name is empty")
        newest_first = self._of(name)[::-1]
        if not newest_first:
            raise PluginUnavailable(name, f"DRA driver {name} is not registered")
        return next((driver for driver in newest_first if driver.is_connected), newest_first[0])

    def instances(self) -> list[DraDriver]:
        """Return the instances in the order of registration."""
        return [instance.driver for instance in self._instances]

    def is_usable(self, name: DriverName) -> bool:
        """Return True if an instance is connected."""
        return any(driver.is_connected for driver in self._of(name))

    def records(self) -> list[DriverRecord]:
        return [driver.record(preferred=self.pick(driver.name) is driver) for driver in self.instances()]

    async def changed(self, since: int) -> int:
        """Wait until the version is greater than `since`, and return it."""
        return await self._changes.after(since)

    async def _keep(self, instance: _Instance) -> None:
        try:
            with instance.scope:
                await instance.driver.run()
        finally:
            instance.ended.set()

    def _offer(self, name: str, endpoint: Path, versions: Sequence[str]) -> Offer:
        _check_name(name)
        driver = DriverName(name)
        if refusal := endpoints.refusal(endpoint, self._settings.connection.below):
            raise InvalidInput(f"DRA driver {name}: the endpoint {endpoint} {refusal}")
        try:
            services = dra_services.choose(versions, self._legacy.get(driver))
        except InvalidInput as e:
            raise InvalidInput(f"DRA driver {name}: {e}") from None
        return Offer(driver, endpoint, tuple(versions), services, dra_services.health(versions))

    def _found(self, name: str, endpoint: Path) -> _Instance | None:
        """Find an instance by name and endpoint: two drivers may have the same endpoint."""
        for instance in self._instances:
            if instance.driver.name == name and instance.driver.endpoint == endpoint:
                return instance
        return None

    def _of(self, name: DriverName) -> list[DraDriver]:
        return [instance.driver for instance in self._instances if instance.driver.name == name]


def _check_name(name: str) -> None:
    if not name:
        raise InvalidInput("driver name is empty")
    if problems := names.driver_name(name):
        raise InvalidInput(f"driver name {name[: names.DNS_SUBDOMAIN_MAX]!r}: {'; '.join(problems)}")
