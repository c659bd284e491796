"""What device plugins list, and how the plugins are. Pure: time is handed in, nothing is awaited.

A resource may have several instances of its plugin, for instance during an update. The newest connected one counts; an
older one stays connected as a standby and counts again if the newest goes. What an instance reports while it does not
count is remembered, not shown. When none is connected the devices stay known and are not healthy, and after the grace
period the resource is forgotten.

    registered ──list──▶ listed ──stream ends──▶ stopped ──grace period──▶ forgotten
                            ▲                       │
                            └── list, any instance ─┘        a restart begins in `stopped`, without devices
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from msgspec import Struct

from devlet.node.devices.order import in_order
from devlet.node.devices.records import PluginState
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import HEALTHY, UNHEALTHY, Device, Options

__all__ = ["UNKNOWN", "Capacity", "Instance", "Inventory", "Moment", "Resource"]

UNKNOWN = "Unknown"  # the health of a device about which nobody says anything

Devices = dict[DeviceID, Device]
Changes = frozenset[DeviceID]  # devices whose health is another one now


class Moment(Struct, frozen=True, gc=False):
    """Now, by both clocks."""

    time: datetime
    monotonic: float


@dataclass(slots=True, eq=False)
class Instance:
    """One registered plugin process. `devices` is None until it has listed them."""

    generation: int
    offer: Offer
    options: Options
    pid: int | None
    since: Moment
    connected: bool = True
    devices: Devices | None = None
    message: str = ""


@dataclass(slots=True, eq=False)
class Resource:
    """`devices` is the list that counts, in natural order; `fresh` says that it came after the last start, `stale` that
    no plugin updates it any more. `stopped` is the moment since which no instance is connected. `unheard`: it is known
    from before a restart, and no plugin has listed its devices since."""

    name: ResourceName
    since: Moment
    listed: bool = False
    fresh: bool = False
    stale: bool = False
    unheard: bool = False
    stopped: Moment | None = None
    devices: Devices = field(default_factory=dict)
    healthy: tuple[DeviceID, ...] = ()
    instances: list[Instance] = field(default_factory=list)  # oldest first

    @property
    def current(self) -> Instance | None:
        """The instance that counts, and to which calls go."""
        return next((each for each in reversed(self.instances) if each.connected), None)

    def health(self, device: DeviceID) -> str:
        listed = self.devices.get(device)
        if listed is None or self.stale:
            return UNKNOWN
        return HEALTHY if listed.is_healthy else UNHEALTHY

    def state(self, instance: Instance) -> PluginState:
        if not instance.connected:
            return PluginState.DISCONNECTED
        if instance is not self.current:
            return PluginState.STANDBY
        return PluginState.SILENT if instance.devices is None else PluginState.CONNECTED


class Capacity(Struct, frozen=True):
    """`removed` are resources that were there and are no more."""

    capacity: dict[ResourceName, int]
    allocatable: dict[ResourceName, int]
    removed: frozenset[ResourceName]


class Inventory:
    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._generations = count(1)
        self._resources: dict[ResourceName, Resource] = {}
        self._removed: set[ResourceName] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._resources

    def get(self, name: ResourceName) -> Resource | None:
        return self._resources.get(name)

    def resources(self) -> list[Resource]:
        return [self._resources[name] for name in sorted(self._resources)]

    def restore(self, names: Iterable[ResourceName], now: Moment) -> None:
        """Resources from before a restart: known, without devices, waiting for their plugins."""
        for name in names:
            self._resources[name] = Resource(name, since=now, listed=True, stale=True, unheard=True, stopped=now)

    def register(self, offer: Offer, options: Options, pid: int | None, now: Moment) -> tuple[Instance, list[Instance]]:
        """The new instance, and those it replaces: a plugin that listens on the same socket again is not a second
        one."""
        resource = self._resources.setdefault(offer.resource, Resource(offer.resource, since=now))
        self._removed.discard(offer.resource)
        resource.stopped = None
        replaced = [each for each in resource.instances if each.offer.socket == offer.socket or not each.connected]
        resource.instances = [each for each in resource.instances if each not in replaced]
        instance = Instance(next(self._generations), offer, options, pid, now)
        resource.instances.append(instance)
        return instance, replaced

    def reconnect(self, instance: Instance, options: Options, pid: int | None, now: Moment) -> None:
        """It answers again, without having registered anew."""
        self._resources[instance.offer.resource].stopped = None
        instance.connected, instance.devices, instance.message = True, None, ""
        instance.options, instance.pid, instance.since = options, pid, now

    def report(self, instance: Instance, devices: Iterable[Device], now: Moment) -> Changes:
        resource = self._resource(instance)
        if resource is None:
            return frozenset()
        if instance.devices is None:
            instance.since = now
        instance.devices = {device.id: device for device in in_order(devices, key=lambda device: device.id)}
        if instance is not resource.current:
            return frozenset()
        resource.fresh = True
        return _show(resource, instance.devices, stale=False)

    def disconnect(self, instance: Instance, message: str, now: Moment) -> Changes:
        """Its stream ended. An older instance that is still there counts from now on."""
        instance.connected, instance.message, instance.since = False, message, now
        resource = self._resource(instance)
        return self._fall_back(resource, now) if resource else frozenset()

    def remove(self, instance: Instance, now: Moment) -> Changes:
        """It was deregistered, or has given up."""
        resource = self._resource(instance)
        if resource is None:
            return frozenset()
        resource.instances.remove(instance)
        return self._fall_back(resource, now)

    def _resource(self, instance: Instance) -> Resource | None:
        """None if the instance is no longer one of it: what was under way may arrive late."""
        resource = self._resources.get(instance.offer.resource)
        return resource if resource and instance in resource.instances else None

    def _fall_back(self, resource: Resource, now: Moment) -> Changes:
        successor = resource.current
        if successor is None:
            resource.stopped = resource.stopped or now
            return _show(resource, resource.devices, stale=True)
        if successor.devices is None:
            return frozenset()
        return _show(resource, successor.devices, stale=False)

    def expire(self, now: Moment) -> list[Resource]:
        """Forget resources that have been without a plugin for longer than the grace period; each is told once."""
        gone = [each for each in self._resources.values() if self._is_over(each, now)]
        for resource in gone:
            del self._resources[resource.name]
            self._removed.add(resource.name)
        return gone

    def _is_over(self, resource: Resource, now: Moment) -> bool:
        return resource.stopped is not None and now.monotonic - resource.stopped.monotonic > self._grace

    def awaited(self, name: ResourceName, now: Moment) -> bool:
        """Whether its devices may still come: it is known from before a restart, or its plugin has just registered."""
        resource = self._resources.get(name)
        if resource is None or resource.fresh or (resource.current is None and resource.instances):
            return False
        return now.monotonic - resource.since.monotonic <= self._grace

    def capacity(self) -> Capacity:
        listed = [each for each in self._resources.values() if each.listed]
        return Capacity(
            {each.name: len(each.devices) for each in listed},
            {each.name: len(each.healthy) for each in listed},
            frozenset(self._removed),
        )

    def registered(self) -> dict[ResourceName, tuple[DeviceID, ...]]:
        """As the checkpoint has it."""
        return {each.name: each.healthy for each in self._resources.values() if each.listed}

    def allocatable(self) -> dict[ResourceName, tuple[Device, ...]]:
        found = ((each, [each.devices[id] for id in each.healthy]) for each in self.resources())
        return {each.name: tuple(devices) for each, devices in found if devices}


def _show(resource: Resource, devices: Devices, *, stale: bool) -> Changes:
    """Let this list count, and say whose health is another one now."""
    before = _healths(resource)
    resource.devices, resource.stale, resource.listed, resource.unheard = devices, stale, True, False
    healthy = () if stale else tuple(device.id for device in devices.values() if device.is_healthy)
    if healthy != resource.healthy:  # the same object as long as it is the same: others remember it
        resource.healthy = healthy
    after = _healths(resource)
    return frozenset(id for id in before.keys() | after.keys() if before.get(id, UNKNOWN) != after.get(id, UNKNOWN))


def _healths(resource: Resource) -> Mapping[DeviceID, str]:
    return {id: resource.health(id) for id in resource.devices}
