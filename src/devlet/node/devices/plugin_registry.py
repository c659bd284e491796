"""The registered device plugins of the node: their connections, which of them is called, and when a resource expires.

The registry applies what happens to plugins to the inventory, which decides. It then reports what changed: to
`DeviceManager.changed`, to the checkpoint, and to the pods whose devices changed their health.

`PluginCalls` makes the calls to the current plugins. They are limited per resource, and repeated if a plugin registers
again during a call.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus

from devlet.errors import NotAllocated, PluginError, PluginUnavailable, Unavailable
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.node.devices.allocations import Allocations
from devlet.node.devices.inventory import Instance, Inventory, Moment
from devlet.node.devices.plugin_connection import (
    Connected,
    DialFailed,
    Disconnected,
    Event,
    Listed,
    Redialling,
    Settings,
    follow,
)
from devlet.node.devices.selection import Ask
from devlet.node.reports import Report
from devlet.objects.identifiers import DeviceID, PodUID, ResourceName
from devlet.plugins.device_plugin import DevicePlugin, Offer
from devlet.plugins.devices import Grant, Options

__all__ = ["AT_ONCE", "PluginCalls", "PluginRegistry"]

log = logging.getLogger(__name__)

T = TypeVar("T")

AT_ONCE = 64  # concurrent allocations per resource


@dataclass(slots=True, eq=False)
class _Registration:
    """An instance and its connection. `plugin` is None while the instance is disconnected."""

    instance: Instance
    plugin: DevicePlugin | None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class PluginRegistry:
    """`save_soon` is called when the checkpoint has to be written. `on_health` is called with the pods whose devices
    changed their health. The callbacks must not block."""

    def __init__(
        self,
        inventory: Inventory,
        allocations: Allocations,
        clock: Clock,
        settings: Settings,
        *,
        save_soon: Callable[[], None],
        on_health: Callable[[frozenset[PodUID]], None],
        report: Callable[[Report], None],
    ) -> None:
        self._inventory = inventory
        self._allocations = allocations
        self._clock = clock
        self._settings = settings
        self._save_soon = save_soon
        self._on_health = on_health
        self._report = report
        self._registrations: dict[Instance, _Registration] = {}
        self._expiring: set[ResourceName] = set()  # resources with a running timer
        self._changes = Changes()
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Plugins can be registered while this runs. The timers of restored resources start now."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for resource in self._inventory.resources():
                self._start_timer(resource.name)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._tasks = None

    async def changed(self) -> None:
        """Wait for the next change of a device list or of a plugin's state."""
        await self._changes.next()

    def notify(self) -> None:
        """Wake all tasks that wait in `changed`."""
        self._changes.notify()

    # Registration

    async def register(self, offer: Offer) -> None:
        """Connect to a plugin and follow it. A registered instance on the same socket is replaced only if that
        succeeds."""
        if self._tasks is None:
            raise Unavailable("the device manager is not running")
        await self._tasks.start(self._follow, offer)

    def deregister(self, offer: Offer) -> None:
        """Drop the instance whose socket was removed. Other instances of the plugin stay."""
        resource = self._inventory.get(offer.resource)
        for instance in list(resource.instances) if resource else ():
            if instance.offer == offer:
                self._end(instance)
                self._disconnected(instance, self._inventory.remove(instance, self._now()))

    def plugin(self, name: ResourceName) -> DevicePlugin:
        """Return the plugin that is called for the resource: the newest connected instance."""
        resource = self._inventory.get(name)
        if resource is None:
            raise NotAllocated(f"unknown Device Plugin {name}")
        registration = self._registrations.get(resource.current) if resource.current else None
        if registration is None or registration.plugin is None:
            raise NotAllocated(f"endpoint {name} has been stopped")
        return registration.plugin

    def options(self, name: ResourceName) -> Options:
        """Return the options that the plugin reported last, even if it is disconnected. After a restart they are not
        known until the plugin registers."""
        resource = self._inventory.get(name)
        if resource is None:
            raise NotAllocated(f"endpoint not found in cache for a registered resource: {name}")
        instance = resource.current or (resource.instances[-1] if resource.instances else None)
        if instance is None:
            raise NotAllocated(f"endpoint {name} has been stopped")
        return instance.options

    def expect(self, names: Iterable[ResourceName]) -> None:
        """Treat unknown resources as known from before a restart: their plugins have the grace period to register."""
        unknown = [name for name in names if name not in self._inventory]
        self._inventory.restore(unknown, self._now())
        for name in unknown:
            self._start_timer(name)

    # Connections

    async def _follow(self, offer: Offer, *, task_status: TaskStatus[None]) -> None:
        async with aclosing(follow(offer, self._clock, self._settings)) as events:
            first = await anext(events)
            assert isinstance(first, Connected)
            registration = self._registered(offer, first.plugin)
            task_status.started()
            try:
                with registration.scope:
                    async for event in events:
                        if isinstance(event, Redialling) and self._is_superseded(registration.instance):
                            self._inventory.remove(registration.instance, self._now())
                            break
                        self._apply(registration, event)
            finally:
                self._registrations.pop(registration.instance, None)

    def _registered(self, offer: Offer, plugin: DevicePlugin) -> _Registration:
        instance, replaced = self._inventory.register(offer, plugin.options, plugin.pid, self._now())
        for each in replaced:
            self._end(each)
        registration = self._registrations[instance] = _Registration(instance, plugin)
        log.info("device plugin registered", extra=facts(resourceName=offer.resource, socket=offer.socket))
        self.notify()
        return registration

    def _apply(self, registration: _Registration, event: Event) -> None:
        instance = registration.instance
        match event:
            case Connected(plugin):
                self._inventory.reconnect(instance, plugin.options, plugin.pid, self._now())
                registration.plugin = plugin
                self.notify()
            case Listed(devices):
                self._publish(instance, self._inventory.report(instance, devices, self._now()))
            case Disconnected(message, is_refusal):
                registration.plugin = None
                if is_refusal:
                    self._report_list(instance.offer, message)
                changes = self._inventory.disconnect(instance, message, self._now())
                about = facts(resourceName=instance.offer.resource, socket=instance.offer.socket, err=message)
                log.warning("device plugin disconnected", extra=about)
                self._disconnected(instance, changes)
            case DialFailed(message):
                instance.message = message

    def _publish(self, instance: Instance, changes: frozenset[DeviceID]) -> None:
        self._save_soon()
        self.notify()
        self._health_changed(self._allocations.owners(instance.offer.resource, changes))

    def _disconnected(self, instance: Instance, changes: frozenset[DeviceID]) -> None:
        self._start_timer(instance.offer.resource)
        self._publish(instance, changes)

    def _report_list(self, offer: Offer, problem: str) -> None:
        message = f"the device list of plugin {offer.resource} at {offer.socket} is not accepted: {problem}"
        self._report(Report("Warning", "DevicePluginListFailed", message))

    def _is_superseded(self, instance: Instance) -> bool:
        """Return True if another instance has taken over and this one is not expected back: the grace period is over,
        or its socket was removed."""
        resource = self._inventory.get(instance.offer.resource)
        if resource is None or resource.current is None:
            return False
        return self._inventory.is_overdue(instance.since, self._now()) or not instance.offer.socket.exists()

    def _end(self, instance: Instance) -> None:
        if registration := self._registrations.pop(instance, None):
            registration.scope.cancel()

    # Expiry

    def _start_timer(self, name: ResourceName) -> None:
        """Start a timer for a resource without a plugin, unless one is running."""
        if self._tasks is not None and name not in self._expiring and self._expires_in(name) is not None:
            self._expiring.add(name)
            self._tasks.start_soon(self._expire, name)

    async def _expire(self, name: ResourceName) -> None:
        while (wait := self._expires_in(name)) is not None:
            await self._clock.sleep(wait + 0.001)
            for resource in self._inventory.expire_health(self._now()):
                self._health_changed(self._allocations.holders(resource))
            self._forget_expired()
        self._expiring.discard(name)

    def _expires_in(self, name: ResourceName) -> float | None:
        return self._inventory.expires_in(name, self._now())

    def _forget_expired(self) -> None:
        expired = self._inventory.expire(self._now())
        for resource in expired:
            for instance in resource.instances:
                self._end(instance)
            log.info("resource removed", extra=facts(resourceName=resource.name))
            self._health_changed(self._allocations.holders(resource.name))
        if expired:
            self._save_soon()
            self.notify()

    def _health_changed(self, pods: frozenset[PodUID]) -> None:
        if pods:
            self._on_health(pods)

    def _now(self) -> Moment:
        return Moment(self._clock.now(), self._clock.monotonic())


class PluginCalls:
    """`plugin` returns the connected plugin of a resource, or raises NotAllocated. `observe` is called with the
    resource and the seconds of each allocation, including the repetitions."""

    def __init__(
        self,
        plugin: Callable[[ResourceName], DevicePlugin],
        clock: Clock,
        observe: Callable[[ResourceName, float], None],
    ) -> None:
        self._plugin = plugin
        self._clock = clock
        self._observe = observe
        self._limiters: dict[ResourceName, anyio.CapacityLimiter] = {}

    async def allocate(self, resource: ResourceName, devices: Sequence[DeviceID]) -> Grant:
        async with self._limiters.setdefault(resource, anyio.CapacityLimiter(AT_ONCE)):
            began = self._clock.monotonic()
            try:
                return await self._call(resource, lambda plugin: plugin.allocate(devices))
            finally:
                self._observe(resource, self._clock.monotonic() - began)

    async def preferred(self, resource: ResourceName, ask: Ask) -> tuple[DeviceID, ...]:
        try:
            return await self._call(
                resource, lambda plugin: plugin.preferred(ask.available, ask.must_include, ask.size)
            )
        except PluginError as e:
            raise NotAllocated(f"device plugin GetPreferredAllocation rpc failed with err: {e.message}") from e

    async def pre_start(self, resource: ResourceName, devices: Sequence[DeviceID]) -> None:
        """Call the plugin once: a pod whose container cannot start is retried anyway."""
        try:
            await self._plugin(resource).pre_start(devices)
        except PluginError as e:
            raise NotAllocated(f"device plugin PreStartContainer rpc failed with err: {e.message}") from e

    async def _call(self, resource: ResourceName, call: Callable[[DevicePlugin], Awaitable[T]]) -> T:
        """Repeat a call that was cut off because the plugin registered again, on the new connection."""
        plugin = self._plugin(resource)
        while True:
            try:
                return await call(plugin)
            except PluginUnavailable:
                if (newer := self._newer(resource, plugin)) is None:
                    raise
                plugin = newer

    def _newer(self, resource: ResourceName, plugin: DevicePlugin) -> DevicePlugin | None:
        try:
            newest = self._plugin(resource)
        except NotAllocated:
            return None
        return newest if newest is not plugin else None
