"""One pod's admission: reserve devices, call the plugins, and either commit everything or leave no trace.

Containers are handled in their order. Later containers of the pod may get the devices of an ordinary init container,
because it ends before they start. Devices of sidecars and other containers are not shared.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from devlet.errors import NotAllocated
from devlet.kit.facts import facts
from devlet.node.devices import hints, limits
from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.node.devices.inventory import Inventory, Resource
from devlet.node.devices.selection import Ask, Want, check_healthy, choose, still_allocated
from devlet.node.topology.hints import Hint, Hints, Mask
from devlet.objects.identifiers import ContainerName, DeviceID, ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.plugins.devices import Grant

__all__ = ["Attempt", "Calls"]

log = logging.getLogger(__name__)

_MAX_QUESTIONS = 3  # to a plugin about its preference


class Calls(Protocol):
    """Calls to the current plugin of a resource."""

    async def allocate(self, resource: ResourceName, devices: Sequence[DeviceID]) -> Grant: ...

    async def preferred(self, resource: ResourceName, ask: Ask) -> tuple[DeviceID, ...]: ...


class Attempt:
    """A topology provider for one pod. `save` returns when the allocations are durable."""

    def __init__(
        self,
        pod: Pod,
        inventory: Inventory,
        allocations: Allocations,
        calls: Calls,
        save: Callable[[], Awaitable[None]],
        *,
        machine_nodes: Sequence[int],
        now: Callable[[], datetime],
    ) -> None:
        self._pod = pod
        self._inventory = inventory
        self._allocations = allocations
        self._calls = calls
        self._save = save
        self._nodes = machine_nodes
        self._now = now
        self._claimed = limits.claimed(pod)
        self._reserved: list[tuple[ResourceName, tuple[DeviceID, ...]]] = []
        self._staged: list[Allocation] = []
        self._added: list[Allocation] = []
        self._reusable: dict[ResourceName, dict[DeviceID, None]] = {}

    def container_hints(self, container: Container) -> Hints:
        found = {}
        for resource, count in self._wanted(container).items():
            prior = self._prior(container.name, resource)
            found[resource] = self._hints(resource, count, prior, tuple(self._reusable.get(resource, ())))
        return found

    def pod_hints(self) -> Hints:
        held = self._allocations.of_pod(self._pod.uid)
        found = {}
        for resource, count in limits.of_pod(self._pod).items():
            if not self._is_plugin_resource(resource):
                continue
            prior = {device for each in held if each.resource == resource for device in each.devices}
            found[resource] = self._hints(resource, count, prior or None, ())
        return found

    def _hints(
        self, name: ResourceName, count: int, prior: Collection[DeviceID] | None, reusable: Collection[DeviceID]
    ) -> Sequence[Hint] | None:
        resource = self._inventory.get(name)
        if resource is None:
            return ()
        taken = self._allocations.taken(name)
        free = [device for device in resource.healthy if device not in taken]
        return hints.for_request(resource.devices, free, reusable, prior, count, self._nodes)

    async def allocate(self, container: Container, affinity: Mask | None) -> None:
        for resource, count in self._wanted(container).items():
            prior = self._prior(container.name, resource)
            if prior is None:
                await self._allocate(container.name, resource, count, affinity)
            else:
                self._check_prior(container.name, resource, count, prior)
        self._update_reusable(container)

    async def commit(self) -> None:
        """Allocate the devices durably. Raise Unavailable if the checkpoint cannot be written: call `undo` then."""
        if not self._staged:
            return
        self._added, self._staged = self._staged, []
        for allocation in self._added:
            self._allocations.add(allocation)
        await self._save()
        for allocation in self._added:
            where = {"containerName": allocation.container, "resourceName": allocation.resource}
            log.info("devices allocated", extra=facts(**where, devices=sorted(allocation.devices)))
        self._added = []

    def undo(self) -> bool:
        """Free what was not committed. Return True if the checkpoint may already contain some of it."""
        written = bool(self._added)
        for allocation in self._added:
            self._allocations.remove(allocation)
        for resource, devices in self._reserved:
            self._allocations.unreserve(resource, devices)
        self._added, self._staged, self._reserved = [], [], []
        return written

    def _wanted(self, container: Container) -> dict[ResourceName, int]:
        found = limits.of_container(container, self._claimed)
        return {resource: count for resource, count in sorted(found.items()) if self._is_plugin_resource(resource)}

    def _is_plugin_resource(self, resource: ResourceName) -> bool:
        return resource in self._inventory or resource in self._allocations.counts()

    def _prior(self, container: ContainerName, resource: ResourceName) -> tuple[DeviceID, ...] | None:
        allocation = self._allocations.get(self._pod.uid, container, resource)
        return tuple(allocation.devices) if allocation else None

    def _check_prior(
        self, container: ContainerName, name: ResourceName, count: int, prior: tuple[DeviceID, ...]
    ) -> None:
        owner = f'pod "{self._pod.uid}" container "{container}"'
        if len(prior) == count and name not in self._inventory:
            raise _unregistered(name)
        resource = self._inventory.get(name)
        still_allocated(name, prior, count, resource.healthy if resource else (), owner)

    async def _allocate(
        self, container: ContainerName, resource: ResourceName, count: int, affinity: Mask | None
    ) -> None:
        devices = await self._select(resource, count, affinity)
        self._allocations.reserve(self._pod.uid, resource, devices)
        self._reserved.append((resource, devices))
        grant = await self._calls.allocate(resource, devices)
        by_node = _by_node(devices, self._inventory.get(resource))
        self._staged.append(Allocation(self._pod.uid, container, resource, by_node, grant, self._now()))

    async def _select(self, name: ResourceName, count: int, affinity: Mask | None) -> tuple[DeviceID, ...]:
        """The caller must reserve the returned devices before it awaits anything."""
        for left in reversed(range(_MAX_QUESTIONS)):
            choice = choose(self._want(name, count, affinity))
            if not isinstance(choice, Ask):
                return choice
            preferred = await self._calls.preferred(name, choice)
            free = set(choice.available).difference(self._allocations.taken(name)).union(choice.must_include)
            if not left or free.issuperset(set(preferred).intersection(choice.available)):
                break  # otherwise other pods took preferred devices meanwhile
        final = choose(self._want(name, count, affinity), preferred)
        assert not isinstance(final, Ask)
        return final

    def _want(self, name: ResourceName, count: int, affinity: Mask | None) -> Want:
        resource = self._inventory.get(name)
        if resource is None:
            raise _unregistered(name)
        check_healthy(name, resource.healthy)
        current = resource.current
        return Want(
            name,
            count,
            resource.devices,
            resource.healthy,
            self._allocations.taken(name),
            tuple(self._reusable.get(name, ())),
            affinity,
            current is not None and current.options.preferred_allocation,
            self._allocations.taken_at_the_start(name, resource.healthy),
        )

    def _update_reusable(self, container: Container) -> None:
        """Let later containers reuse the devices of an ordinary init container, and no others."""
        is_reusable = limits.is_plain_init(self._pod, container)
        held = self._allocations.of_container(self._pod.uid, container.name)
        for allocation in [*held, *(each for each in self._staged if each.container == container.name)]:
            reusable = self._reusable.setdefault(allocation.resource, {})
            for device in allocation.devices:
                if is_reusable:
                    reusable[device] = None
                else:
                    reusable.pop(device, None)


def _unregistered(resource: ResourceName) -> NotAllocated:
    return NotAllocated(f"cannot allocate unregistered device {resource}")


def _by_node(devices: Sequence[DeviceID], resource: Resource | None) -> dict[int, tuple[DeviceID, ...]]:
    """Group the devices by node. Devices that the plugin does not list have none."""
    found: dict[int, tuple[DeviceID, ...]] = {}
    for id in devices:
        device = resource.devices.get(id) if resource else None
        for node in (device.nodes if device else ()) or (NO_NODE,):
            found[node] = (*found.get(node, ()), id)
    return dict(sorted(found.items()))
