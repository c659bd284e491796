"""The device manager: admits pods to devices, prepares their containers, and releases the devices.

It is what the rest of the node uses; the parts are in the modules beside it. Between two awaits no other task runs, so
no lock is needed: what spans an await is a reservation. An allocation is on disk before its container may start.
"""

import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskStatus
from msgspec import structs

from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.node.devices import container_options, limits, plugin_connection
from devlet.node.devices.allocations import Allocation, Allocations
from devlet.node.devices.attempt import Attempt
from devlet.node.devices.checkpoint import Checkpoint, CheckpointContent, learned
from devlet.node.devices.container_options import ContainerOptions
from devlet.node.devices.inventory import HEALTH_GRACE, Capacity, Inventory, Moment
from devlet.node.devices.listing import device_records, plugin_records, resource_statuses
from devlet.node.devices.plugin_registry import PluginCalls, PluginRegistry
from devlet.node.devices.records import DeviceRecord, PluginRecord
from devlet.node.devices.releases import Hooks, NoHooks, Releaser
from devlet.node.reports import Report
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import Container, ResourceStatus
from devlet.objects.types.pod import Pod
from devlet.plugins import device_plugin
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Device, Grant
from devlet.state import device_checkpoint
from devlet.state.checkpoint_file import CheckpointFile, GroupSaver

__all__ = ["DeviceManager", "Settings"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    grace: float = 300.0  # for which a resource stays known without its plugin
    health_grace: float = HEALTH_GRACE  # after a restart, for which pod statuses keep the health from before
    plugin: device_plugin.Settings = field(default=device_plugin.Settings())
    reconnect: Backoff = field(default=Backoff(0.2, 10.0))
    hook_retry: Backoff = field(default=Backoff(1.0, 60.0))


class DeviceManager:
    """`directory` contains the registration socket and the checkpoint. `machine_nodes` are the host's NUMA nodes.
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
        self._machine_nodes = tuple(machine_nodes)
        self._inventory = Inventory(settings.grace, settings.health_grace)
        self._allocations = Allocations()
        self._checkpoint = Checkpoint(
            file or CheckpointFile(directory / device_checkpoint.FILE_NAME),
            CheckpointContent(self._inventory, self._allocations),
            clock,
            report,
        )
        saver = self._checkpoint.saver
        self._plugins = PluginRegistry(
            self._inventory,
            self._allocations,
            clock,
            plugin_connection.Settings(settings.plugin, settings.reconnect),
            save_soon=saver.save_soon,
            on_health=on_health,
            report=report,
        )
        self._calls = PluginCalls(self._plugins.plugin, clock, observe_allocation)
        self._releaser = Releaser(self._allocations, saver, hooks, clock, settings.hook_retry, report)

    @property
    def checkpoint(self) -> GroupSaver:
        return self._checkpoint.saver

    @property
    def checkpoint_existed(self) -> bool:
        """Return True if there was an intact checkpoint at the start."""
        return self._checkpoint.existed

    @property
    def damage(self) -> tuple[str, ...]:
        """Name the damaged checkpoints that were kept, one sentence each."""
        return self._checkpoint.damage

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ready when the allocations from before are known, and plugins can register."""
        await self._checkpoint.restore()
        restored = facts(allocations=len(self._allocations), resources=len(self._inventory.resources()))
        log.info("devices restored", extra=restored)
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._checkpoint.saver.run)
            await tasks.start(self._plugins.run)
            task_status.started()

    async def changed(self) -> None:
        """Wait for the next change of a device list or of a plugin's state."""
        await self._plugins.changed()

    # Plugins

    async def register(self, offer: Offer) -> None:
        """Connect to a plugin and follow it. A registered instance on the same socket is replaced only if that
        succeeds."""
        await self._plugins.register(offer)

    def deregister(self, offer: Offer) -> None:
        """Drop the instance whose socket was removed. Other instances of the plugin stay."""
        self._plugins.deregister(offer)

    # Pods

    @asynccontextmanager
    async def attempt(self, pod: Pod) -> AsyncIterator[Attempt]:
        """Admit the pod in the block. What the block does not commit is undone at its end."""
        attempt = Attempt(
            pod,
            self._inventory,
            self._allocations,
            self._calls,
            self.checkpoint.save,
            machine_nodes=self._machine_nodes,
            now=self._clock.now,
        )
        try:
            yield attempt
        finally:
            if attempt.undo():
                self.checkpoint.save_soon()

    def learn(self, pods: Iterable[Pod]) -> None:
        """Take the allocations of running pods from their statuses if the checkpoint does not have them, because it was
        lost. The statuses do not contain the plugins' answers: `start` requests these again."""
        found = [each for pod in pods if not self.holds_devices(pod.uid) for each in learned(pod)]
        for each in found:
            if self._allocations.owners(each.resource, each.devices) <= {each.pod}:
                self._allocations.add(each)
        if found:
            self._plugins.expect({each.resource for each in found})
            log.warning("allocations learned from pod statuses", extra=facts(allocations=len(found)))
            self.checkpoint.save_soon()
            self._plugins.notify()

    def pending_resources(self, pod: Pod) -> tuple[ResourceName, ...]:
        """Return the resources of the pod whose plugins are expected to register or to list their devices."""
        now = Moment(self._clock.now(), self._clock.monotonic())
        wanted = [name for name, number in limits.of_pod(pod).items() if number]
        return tuple(sorted(name for name in wanted if self._inventory.is_pending(name, now)))

    async def start(self, pod: Pod, container: Container) -> ContainerOptions | None:
        """Have the plugins prepare the container's devices, and return what the container gets with them."""
        for each in self._allocations.of_container(pod.uid, container.name):
            if each.grant is None:
                await self._request_grant(each)
            if self._plugins.options(each.resource).pre_start:
                await self._calls.pre_start(each.resource, tuple(each.devices))
        return self.options(pod.uid, container.name)

    async def _request_grant(self, allocation: Allocation) -> None:
        """Repeat the allocation of known devices, because the plugin's answer was lost."""
        grant = await self._calls.allocate(allocation.resource, tuple(allocation.devices))
        self._allocations.remove(allocation)
        self._allocations.add(structs.replace(allocation, grant=grant))
        await self.checkpoint.save()

    def options(self, pod: PodUID, container: ContainerName) -> ContainerOptions | None:
        """Return what the container gets with its devices, or None if it has none."""
        allocated = self._allocations.of_container(pod, container)
        return container_options.merge([(each.resource, each.grant or Grant()) for each in allocated])

    async def release(self, pod: PodUID) -> None:
        """Release all devices of the pod. They are free only after the release hooks have run."""
        await self._releaser.release(pod)

    async def retain(self, pods: Collection[PodUID]) -> None:
        """Release the devices of all other pods: they ended while devlet was not running."""
        await self._releaser.retain(pods)

    # Views

    def capacity(self) -> Capacity:
        return self._inventory.capacity()

    def is_plugin_resource(self, name: ResourceName) -> bool:
        return name in self._inventory or name in self._allocations.counts()

    def holds_devices(self, pod: PodUID) -> bool:
        return bool(self._allocations.of_pod(pod))

    def allocated_counts(self) -> dict[ResourceName, int]:
        return self._allocations.counts()

    def container_devices(
        self, pod: PodUID, container: ContainerName
    ) -> dict[ResourceName, dict[DeviceID, tuple[int, ...]]]:
        return {each.resource: each.devices for each in self._allocations.of_container(pod, container)}

    def allocatable_devices(self) -> dict[ResourceName, tuple[Device, ...]]:
        return self._inventory.allocatable()

    def statuses(self, pod: PodUID, container: ContainerName) -> tuple[ResourceStatus, ...]:
        return resource_statuses(self._allocations.of_container(pod, container), self._inventory)

    def plugin_records(self) -> list[PluginRecord]:
        return plugin_records(self._inventory, self._allocations)

    def device_records(self) -> list[DeviceRecord]:
        return device_records(self._inventory, self._allocations)
