"""The device manager: follows plugins, lets pods attempt to get devices, writes down who holds what, takes them back.

It owns the inventory and the holdings; decisions are in the modules beside it. Between two awaits nobody else runs, so
no lock is needed: what spans an await is a reservation. A holding is on disk before its container may start.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus
from msgspec import structs

from devlet.errors import (
    DevletError,
    NotAllocated,
    PluginError,
    PluginRefused,
    PluginUnavailable,
    StateCorrupt,
    Unavailable,
)
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.node.devices import book, container_options, limits
from devlet.node.devices.attempt import Attempt
from devlet.node.devices.container_options import ContainerOptions
from devlet.node.devices.holdings import Holding, Holdings
from devlet.node.devices.inventory import Capacity, Instance, Inventory, Moment, Resource
from devlet.node.devices.learning import learned
from devlet.node.devices.listing import device_records, plugin_records, resource_statuses
from devlet.node.devices.records import DeviceRecord, PluginRecord
from devlet.node.devices.releases import Hooks, NoHooks, Release
from devlet.node.devices.selection import Ask
from devlet.node.reports import Report
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import Container, ResourceStatus
from devlet.objects.types.pod import Pod
from devlet.plugins import device_plugin
from devlet.plugins.device_plugin import DevicePlugin, Offer, connected
from devlet.plugins.devices import Device, Grant
from devlet.state.checkpoint_file import CheckpointFile, GroupSaver

__all__ = ["CHECKPOINT", "DeviceManager", "Settings"]

log = logging.getLogger(__name__)

T = TypeVar("T")

CHECKPOINT = "kubelet_internal_checkpoint"
_CALLS_AT_ONCE = 64  # to one plugin


@dataclass(frozen=True, slots=True)
class Settings:
    grace: float = 300.0  # seconds that a resource stays known without its plugin
    doubt: float = 30.0  # seconds after a start before the health of devices is unknown, if their plugin is not back
    plugin: device_plugin.Settings = field(default=device_plugin.Settings())
    reconnect: Backoff = field(default=Backoff(0.2, 10.0))
    hook_retry: Backoff = field(default=Backoff(1.0, 60.0))


class DeviceManager:
    """`directory` is that of the registration socket and of the checkpoint. `machine_nodes` are the host's NUMA nodes.
    The callbacks must not block."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        file: CheckpointFile | None = None,
        machine_nodes: Sequence[int] = (0,),
        hooks: Hooks = NoHooks(),
        on_health: Callable[[frozenset[PodUID]], None] = lambda pods: None,
        report: Callable[[Report], None] = lambda report: None,
        observe_allocation: Callable[[ResourceName, float], None] = lambda resource, seconds: None,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._machine_nodes = tuple(machine_nodes)
        self._hooks = hooks
        self._on_health = on_health
        self._report = report
        self._inventory = Inventory(settings.grace)
        self._holdings = Holdings()
        self._book = book.Book(self._inventory, self._holdings)
        self._file = file or CheckpointFile(directory / CHECKPOINT)
        self._saver = GroupSaver(self._file, self._book.content, clock=clock)
        self._calls = _Calls(self._plugin, clock, observe_allocation)
        self._plugins: dict[Instance, DevicePlugin] = {}
        self._scopes: dict[Instance, anyio.CancelScope] = {}
        self._expiring: set[ResourceName] = set()
        self._changed = anyio.Event()
        self._tasks: TaskGroup | None = None
        self.checkpoint_existed = False
        self.damage: tuple[str, ...] = ()

    @property
    def checkpoint(self) -> GroupSaver:
        return self._saver

    # Life

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ready when it is known who held what before."""
        await anyio.to_thread.run_sync(self._file.prepare)
        await self._restore()
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._saver.run)
            self._tasks = tasks
            for resource in self._inventory.resources():
                self._expire_unless_back(resource.name)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._tasks = None

    async def _restore(self) -> None:
        try:
            blob = await anyio.to_thread.run_sync(self._file.read)
            self._report_dropped(self._book.restore(blob, self._moment()) if blob is not None else ())
            self.checkpoint_existed = blob is not None
        except StateCorrupt as e:  # as if there had been none: nothing is allocatable before plugins list it
            await self._set_aside(e)
        aside = await anyio.to_thread.run_sync(self._file.set_aside_files)
        self.damage = tuple(f"{path} was damaged and set aside" for path in aside)
        count = len(self._inventory.resources())
        log.info("devices restored", extra=facts(holdings=len(self._holdings), resources=count))

    async def _set_aside(self, error: StateCorrupt) -> None:
        path = await anyio.to_thread.run_sync(self._file.set_aside, self._clock.now())
        repair = f"devlet checkpoint repair {path} --output {self._file.path} --force"
        message = (
            f"{error}; kept as {path}. What running pods hold is taken from their statuses; or stop devlet and {repair}"
        )
        log.error("checkpoint damaged", extra=facts(path=path, err=error))
        self._report(Report("Warning", "DeviceCheckpointDamaged", message))

    def _report_dropped(self, problems: Sequence[str]) -> None:
        for problem in problems:
            log.error("checkpoint entry dropped", extra=facts(err=problem))
            self._report(
                Report("Warning", "DeviceCheckpointDamaged", f"an entry of {CHECKPOINT} was dropped: {problem}")
            )

    def _expire_unless_back(self, name: ResourceName) -> None:
        """For a resource that has lost its plugin. One timer is enough, however often that happens."""
        resource = self._inventory.get(name)
        if resource and resource.stopped and self._tasks is not None and name not in self._expiring:
            self._expiring.add(name)
            self._tasks.start_soon(self._expire, name)

    async def _expire(self, name: ResourceName) -> None:
        while (resource := self._inventory.get(name)) and resource.stopped:
            away = self._clock.monotonic() - resource.stopped.monotonic
            if resource.unheard and away >= self._settings.doubt:
                self._doubt(resource)
            left = self._settings.grace - away
            if left < 0:
                self._forget_expired()
                break
            if resource.unheard:
                left = min(left, self._settings.doubt - away)
            await self._clock.sleep(left + 0.001)
        self._expiring.discard(name)

    def _doubt(self, resource: Resource) -> None:
        """Report the health of its devices as unknown. Until now the statuses of pods have kept the health from before
        the restart."""
        resource.unheard = False
        self._tell_holders(resource.name)

    def _tell_holders(self, name: ResourceName) -> None:
        if pods := frozenset(each.pod for each in self._holdings if each.resource == name):
            self._on_health(pods)

    def _forget_expired(self) -> None:
        for resource in self._inventory.expire(self._moment()):
            for instance in resource.instances:
                self._end(instance)
            log.info("resource removed", extra=facts(resourceName=resource.name))
            self._tell_holders(resource.name)
        self._saver.save_soon()
        self._tell()

    def _moment(self) -> Moment:
        return Moment(self._clock.now(), self._clock.monotonic())

    def _tell(self, changes: frozenset[DeviceID] = frozenset(), resource: ResourceName | None = None) -> None:
        """Wake those who wait for a change, and name the pods whose devices changed their health."""
        self._changed.set()
        self._changed = anyio.Event()
        if resource is not None and changes:
            owners = {self._holdings.owner(resource, device) for device in changes}
            if pods := frozenset(owner for owner in owners if owner is not None):
                self._on_health(pods)

    async def changed(self) -> None:
        """At the next change of what plugins list, or of how they are."""
        await self._changed.wait()

    # Plugins

    async def register(self, offer: Offer) -> None:
        """Connect to a plugin and follow it. Its predecessor on the same socket is dropped only when this succeeds."""
        if self._tasks is None:
            raise Unavailable("the device manager is not running")
        await self._tasks.start(self._follow, offer)

    def deregister(self, offer: Offer) -> None:
        """Its socket is gone. Other instances of the plugin are not touched."""
        resource = self._inventory.get(offer.resource)
        for instance in list(resource.instances) if resource else ():
            if instance.offer == offer:
                self._end(instance)
                changes = self._inventory.remove(instance, self._moment())
                self._stopped_perhaps(instance, changes)

    async def _follow(self, offer: Offer, *, task_status: TaskStatus[None]) -> None:
        async with connected(offer, self._settings.plugin) as plugin:
            instance = self._registered(offer, plugin)
            task_status.started()
            with self._scope(instance) as scope:
                await self._listen(instance, plugin)
        if not scope.cancel_called:
            with self._scope(instance):
                await self._reconnect(instance)

    def _registered(self, offer: Offer, plugin: DevicePlugin) -> Instance:
        instance, replaced = self._inventory.register(offer, plugin.options, plugin.pid, self._moment())
        for each in replaced:
            self._end(each)
        log.info("device plugin registered", extra=facts(resourceName=offer.resource, socket=offer.socket))
        self._tell()
        return instance

    def _scope(self, instance: Instance) -> anyio.CancelScope:
        """What `_end` cancels."""
        self._scopes[instance] = anyio.CancelScope()
        return self._scopes[instance]

    async def _reconnect(self, instance: Instance) -> None:
        """A stream that ended is opened again, until the instance is replaced, deregistered or forgotten."""
        failures = 0
        while True:
            await self._clock.sleep(self._settings.reconnect.delay(failures, random.random))
            failures += 1
            if self._is_superseded(instance):
                self._inventory.remove(instance, self._moment())
                return
            try:
                async with connected(instance.offer, self._settings.plugin) as plugin:
                    self._inventory.reconnect(instance, plugin.options, plugin.pid, self._moment())
                    self._tell()
                    if await self._listen(instance, plugin):
                        failures = 0
            except PluginError as e:
                instance.message = e.message

    def _is_superseded(self, instance: Instance) -> bool:
        """Whether nobody waits for it any more: another one does its work, and it had its time or left for good."""
        resource = self._inventory.get(instance.offer.resource)
        if resource is None or resource.current is None:
            return False
        away = self._clock.monotonic() - instance.since.monotonic
        return away > self._settings.grace or not instance.offer.socket.exists()

    async def _listen(self, instance: Instance, plugin: DevicePlugin) -> bool:
        """Until the stream ends. Whether it brought a list."""
        listed = False
        message = "it ended its device list"
        self._plugins[instance] = plugin
        try:
            async for devices in plugin.devices():
                listed = True
                self._listed(instance, devices)
        except PluginError as e:
            message = e.message
            if isinstance(e, PluginRefused):
                self._report_list(instance.offer, message)
        finally:
            self._plugins.pop(instance, None)
        changes = self._inventory.disconnect(instance, message, self._moment())
        facts_ = facts(resourceName=instance.offer.resource, socket=instance.offer.socket, err=message)
        log.warning("device plugin disconnected", extra=facts_)
        self._stopped_perhaps(instance, changes)
        return listed

    def _report_list(self, offer: Offer, problem: str) -> None:
        """Something is wrong with what it says, unlike with one that merely went."""
        message = f"the device list of plugin {offer.resource} at {offer.socket} is not accepted: {problem}"
        self._report(Report("Warning", "DevicePluginListFailed", message))

    def _listed(self, instance: Instance, devices: Sequence[Device]) -> None:
        changes = self._inventory.report(instance, devices, self._moment())
        self._saver.save_soon()
        self._tell(changes, instance.offer.resource)

    def _stopped_perhaps(self, instance: Instance, changes: frozenset[DeviceID]) -> None:
        self._expire_unless_back(instance.offer.resource)
        self._saver.save_soon()
        self._tell(changes, instance.offer.resource)

    def _end(self, instance: Instance) -> None:
        if scope := self._scopes.pop(instance, None):
            scope.cancel()
        self._plugins.pop(instance, None)

    def _plugin(self, name: ResourceName) -> DevicePlugin:
        resource = self._inventory.get(name)
        if resource is None:
            raise NotAllocated(f"unknown Device Plugin {name}")
        plugin = self._plugins.get(resource.current) if resource.current else None
        if plugin is None:
            raise NotAllocated(f"endpoint {name} has been stopped")
        return plugin

    # Pods

    @asynccontextmanager
    async def attempt(self, pod: Pod) -> AsyncIterator[Attempt]:
        attempt = Attempt(
            pod,
            self._inventory,
            self._holdings,
            self._calls,
            self._saver.save,
            machine_nodes=self._machine_nodes,
            now=self._clock.now,
        )
        try:
            yield attempt
        finally:
            if attempt.undo():
                self._saver.save_soon()

    def learn(self, pods: Iterable[Pod]) -> None:
        """Pods that run and hold nothing that we know of, because the checkpoint was lost: what they hold is in their
        status. What the plugins gave along is not."""
        found = [each for pod in pods if not self.holds_devices(pod.uid) for each in learned(pod)]
        for holding in found:
            if all(self._holdings.owner(holding.resource, id) in (None, holding.pod) for id in holding.devices):
                self._holdings.add(holding)
        if found:
            self._await({holding.resource for holding in found})
            log.warning("holdings learned from pod statuses", extra=facts(holdings=len(found)))
            self._saver.save_soon()
            self._tell()

    def _await(self, resources: Collection[ResourceName]) -> None:
        """They had plugins before the restart, which are expected back."""
        unknown = [name for name in resources if name not in self._inventory]
        self._inventory.restore(unknown, self._moment())
        for name in unknown:
            self._expire_unless_back(name)

    def awaited(self, pod: Pod) -> tuple[ResourceName, ...]:
        """Resources the pod needs whose plugins are expected back, or have not listed their devices yet."""
        now = self._moment()
        wanted = [name for name, number in limits.of_pod(pod).items() if number]
        return tuple(sorted(name for name in wanted if self._inventory.awaited(name, now)))

    async def start(self, pod: Pod, container: Container) -> ContainerOptions | None:
        """Before a container starts: let the plugins that want it prepare its devices, and say what it gets."""
        for holding in self._holdings.of_container(pod.uid, container.name):
            if holding.grant is None:
                await self._grant_again(holding)
            if self._wants_pre_start(holding.resource):
                await _pre_start(self._plugin(holding.resource), holding)
        return self.options(pod.uid, container.name)

    def _wants_pre_start(self, name: ResourceName) -> bool:
        """What the plugin said last; it may be away. After a restart nobody knows before it is back."""
        resource = self._inventory.get(name)
        if resource is None:
            raise NotAllocated(f"endpoint not found in cache for a registered resource: {name}")
        instance = resource.current or (resource.instances[-1] if resource.instances else None)
        if instance is None:
            raise NotAllocated(f"endpoint {name} has been stopped")
        return instance.options.pre_start

    async def _grant_again(self, holding: Holding) -> None:
        """Who holds the devices is known, but not what the plugin gave along: ask it once more."""
        grant = await self._calls.allocate(holding.resource, tuple(holding.devices))
        self._holdings.remove(holding)
        self._holdings.add(structs.replace(holding, grant=grant))
        await self._saver.save()

    def options(self, pod: PodUID, container: ContainerName) -> ContainerOptions | None:
        """What the container gets with its devices; None if it has none."""
        held = self._holdings.of_container(pod, container)
        return container_options.merge([(each.resource, each.grant or Grant()) for each in held])

    async def release(self, pod: PodUID) -> None:
        """Give back all that the pod holds, once the hooks have run. Devices are free only then."""
        held = self._holdings.of_pod(pod)
        if not held or self._holdings.releasing(pod):
            return
        self._holdings.begin_release(pod)
        try:
            await self._run_hooks(held)
            for holding in held:
                self._holdings.remove(holding)
        finally:
            self._holdings.end_release(pod)
        log.info("devices released", extra=facts(podUID=pod, devices=sum(len(each.devices) for each in held)))
        try:
            await self._saver.save()
        except Unavailable:  # stale entries on disk do no harm: the next start finds that the pod is gone
            self._saver.save_soon()

    async def _run_hooks(self, held: Sequence[Holding]) -> None:
        done: set[tuple[ResourceName, DeviceID]] = set()
        for holding in held:
            devices = tuple(id for id in holding.devices if (holding.resource, id) not in done)
            done.update((holding.resource, id) for id in devices)
            if devices:
                await self._run_hook(Release(holding.resource, devices, holding.pod, holding.container))

    async def _run_hook(self, release: Release) -> None:
        for delay in self._settings.hook_retry.delays(random.random):
            try:
                return await self._hooks.run(release)
            except DevletError as e:
                message = f"devices {', '.join(release.devices)} of {release.resource} are not free yet: {e}"
                self._report(Report("Warning", "DeviceReleaseFailed", message))
                await self._clock.sleep(delay)

    async def retain(self, pods: Collection[PodUID]) -> None:
        """Release what pods hold that are not among these: they ended while nobody looked."""
        async with anyio.create_task_group() as tasks:
            for pod in set(self._holdings.pods()).difference(pods):
                tasks.start_soon(self.release, pod)

    # What others ask

    def capacity(self) -> Capacity:
        return self._inventory.capacity()

    def is_plugin_resource(self, name: ResourceName) -> bool:
        return name in self._inventory or name in self._holdings.counts()

    def holds_devices(self, pod: PodUID) -> bool:
        return bool(self._holdings.of_pod(pod))

    def allocated_counts(self) -> dict[ResourceName, int]:
        return self._holdings.counts()

    def container_devices(
        self, pod: PodUID, container: ContainerName
    ) -> dict[ResourceName, dict[DeviceID, tuple[int, ...]]]:
        return {each.resource: each.devices for each in self._holdings.of_container(pod, container)}

    def allocatable_devices(self) -> dict[ResourceName, tuple[Device, ...]]:
        return self._inventory.allocatable()

    def statuses(self, pod: PodUID, container: ContainerName) -> tuple[ResourceStatus, ...]:
        return resource_statuses(self._holdings.of_container(pod, container), self._inventory)

    def plugin_records(self) -> list[PluginRecord]:
        return plugin_records(self._inventory, self._holdings)

    def device_records(self) -> list[DeviceRecord]:
        return device_records(self._inventory, self._holdings)


async def _pre_start(plugin: DevicePlugin, holding: Holding) -> None:
    try:
        await plugin.pre_start(tuple(holding.devices))
    except PluginError as e:
        raise NotAllocated(f"device plugin PreStartContainer rpc failed with err: {e.message}") from e


class _Calls:
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
        async with self._limiters.setdefault(resource, anyio.CapacityLimiter(_CALLS_AT_ONCE)):
            began = self._clock.monotonic()
            try:
                return await self._asked(resource, lambda plugin: plugin.allocate(devices))
            finally:
                self._observe(resource, self._clock.monotonic() - began)

    async def preferred(self, resource: ResourceName, ask: Ask) -> tuple[DeviceID, ...]:
        try:
            return await self._asked(
                resource, lambda plugin: plugin.preferred(ask.available, ask.must_include, ask.size)
            )
        except PluginError as e:
            raise NotAllocated(f"device plugin GetPreferredAllocation rpc failed with err: {e.message}") from e

    async def _asked(self, resource: ResourceName, call: Callable[[DevicePlugin], Awaitable[T]]) -> T:
        """A plugin that registers again ends the calls of its earlier connection: they are repeated on the new one."""
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
