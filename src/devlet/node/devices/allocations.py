"""The allocated devices: the only record of which pod a device belongs to. Pure.

A device that is not free is reserved for a pod that is being admitted, or allocated to one. Two containers of one pod
may have the same device, if the first is an init container that has ended when the second starts; two pods never do.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from msgspec import Struct

from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins import grants
from devlet.plugins.devices import Grant
from devlet.state.device_checkpoint import Entry

__all__ = ["NO_NODE", "Allocation", "Allocations"]

NO_NODE = -1  # the checkpoint's NUMA node for devices without one

Key = tuple[PodUID, ContainerName, ResourceName]


class Allocation(Struct, frozen=True, dict=True):
    """Devices of one resource in one container, by NUMA node, and the plugin's answer to Allocate. A device of several
    nodes is listed under each. `grant` is None if the answer was lost, `since` if the allocation is older than the last
    restart."""

    pod: PodUID
    container: ContainerName
    resource: ResourceName
    by_node: Mapping[int, tuple[DeviceID, ...]]
    grant: Grant | None
    since: datetime | None = None

    @property
    def key(self) -> Key:
        return self.pod, self.container, self.resource

    @cached_property
    def entry(self) -> Entry:
        """The entry in the checkpoint."""
        by_node = {node: tuple(map(str, ids)) for node, ids in self.by_node.items()}
        response = None if self.grant is None else grants.encode(self.grant)
        return Entry(self.pod, self.container, self.resource, by_node, response)

    @cached_property
    def devices(self) -> dict[DeviceID, tuple[int, ...]]:
        """The NUMA nodes of each device."""
        found: dict[DeviceID, tuple[int, ...]] = {}
        for node, ids in self.by_node.items():
            for id in ids:
                found[id] = (*found.get(id, ()), node) if node != NO_NODE else found.get(id, ())
        return found


class _Owner(Struct):
    """How many containers of the pod have the device, and how many reservations for the pod include it."""

    pod: PodUID
    containers: int = 0
    reservations: int = 0


class Allocations:
    def __init__(self) -> None:
        self._all: dict[Key, Allocation] = {}  # in the order of creation
        self._pods: dict[PodUID, dict[Key, Allocation]] = {}
        self._owners: dict[ResourceName, dict[DeviceID, _Owner]] = {}
        self._releasing: set[PodUID] = set()
        self._entries: list[Entry] | None = []  # None: has to be collected again
        self._cursors: dict[ResourceName, tuple[Sequence[DeviceID], int]] = {}

    def __iter__(self) -> Iterator[Allocation]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def taken(self, resource: ResourceName) -> Collection[DeviceID]:
        """Return a live view of the resource's devices that are not free."""
        return self._owners.setdefault(resource, {})

    def taken_at_the_start(self, resource: ResourceName, devices: Sequence[DeviceID]) -> int:
        """Return how many of the first devices of this list are not free. Fast while the list is the same object and no
        device of the resource is released."""
        owners = self._owners.setdefault(resource, {})
        known, index = self._cursors.get(resource, (devices, 0))
        if known is not devices:
            index = 0
        while index < len(devices) and devices[index] in owners:
            index += 1
        self._cursors[resource] = devices, index
        return index

    def entries(self) -> list[Entry]:
        """Return the entries of the checkpoint, in the order of creation. Callers must not change the list."""
        if self._entries is None:
            self._entries = [each.entry for each in self._all.values()]
        return self._entries

    def counts(self) -> dict[ResourceName, int]:
        """Count the devices of each resource that are not free."""
        return {resource: len(owners) for resource, owners in self._owners.items() if owners}

    def owner(self, resource: ResourceName, device: DeviceID) -> PodUID | None:
        owner = self._owners.get(resource, {}).get(device)
        return owner.pod if owner else None

    def owners(self, resource: ResourceName, devices: Iterable[DeviceID]) -> frozenset[PodUID]:
        """Return the pods for which any of these devices is reserved or allocated."""
        owners = self._owners.get(resource, {})
        return frozenset(owners[device].pod for device in devices if device in owners)

    def holders(self, resource: ResourceName) -> frozenset[PodUID]:
        """Return the pods to which any device of the resource is allocated."""
        return frozenset(each.pod for each in self._all.values() if each.resource == resource)

    def pods(self) -> list[PodUID]:
        return list(self._pods)

    def of_pod(self, pod: PodUID) -> list[Allocation]:
        return list(self._pods.get(pod, {}).values())

    def of_container(self, pod: PodUID, container: ContainerName) -> list[Allocation]:
        """Return the container's allocations by resource name."""
        found = [each for each in self.of_pod(pod) if each.container == container]
        return sorted(found, key=lambda allocation: allocation.resource)

    def get(self, pod: PodUID, container: ContainerName, resource: ResourceName) -> Allocation | None:
        return self._all.get((pod, container, resource))

    def reserve(self, pod: PodUID, resource: ResourceName, devices: Iterable[DeviceID]) -> None:
        owners = self._owners.setdefault(resource, {})
        for device in devices:
            _own(owners, device, pod).reservations += 1

    def unreserve(self, resource: ResourceName, devices: Iterable[DeviceID]) -> None:
        for device in devices:
            self._owners[resource][device].reservations -= 1
            self._drop_unused(resource, device)

    def add(self, allocation: Allocation) -> None:
        owners = self._owners.setdefault(allocation.resource, {})
        for device in allocation.devices:
            _own(owners, device, allocation.pod).containers += 1
        self._all[allocation.key] = allocation
        if self._entries is not None:
            self._entries.append(allocation.entry)
        self._pods.setdefault(allocation.pod, {})[allocation.key] = allocation

    def remove(self, allocation: Allocation) -> None:
        del self._all[allocation.key]
        self._entries = None
        pod = self._pods[allocation.pod]
        del pod[allocation.key]
        if not pod:
            del self._pods[allocation.pod]
        for device in allocation.devices:
            self._owners[allocation.resource][device].containers -= 1
            self._drop_unused(allocation.resource, device)

    def _drop_unused(self, resource: ResourceName, device: DeviceID) -> None:
        owner = self._owners[resource][device]
        if not owner.containers and not owner.reservations:
            del self._owners[resource][device]
            self._cursors.pop(resource, None)

    def releasing(self, pod: PodUID) -> bool:
        return pod in self._releasing

    def begin_release(self, pod: PodUID) -> None:
        self._releasing.add(pod)

    def end_release(self, pod: PodUID) -> None:
        self._releasing.discard(pod)


def _own(owners: dict[DeviceID, _Owner], device: DeviceID, pod: PodUID) -> _Owner:
    owner = owners.setdefault(device, _Owner(pod))
    if owner.pod != pod:
        raise AssertionError(f"device {device} belongs to pod {owner.pod} and cannot belong to pod {pod} as well")
    return owner
