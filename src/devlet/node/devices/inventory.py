"""What device plugins list, and the state of the plugins. Pure: time is an argument, nothing is awaited.

A resource may have several instances of its plugin, for instance during an update. The newest connected instance is the
current one; an older one stays connected as a standby and becomes current again if the newest one disconnects. Lists of
a standby are kept for that moment. When no instance is connected, the devices stay known but are not healthy, and after
the grace period the resource is forgotten.

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

__all__ = ["HEALTH_GRACE", "UNKNOWN", "Capacity", "Instance", "Inventory", "Moment", "Resource"]

UNKNOWN = "Unknown"  # the health of a device that no connected plugin lists
HEALTH_GRACE = 30.0  # seconds

Devices = dict[DeviceID, Device]
Changes = frozenset[DeviceID]  # devices whose health has changed


class Moment(Struct, frozen=True, gc=False):
    """A point in time by both clocks."""

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
    """`devices` is the list of the current instance in natural order, or the last one. `stale`: no instance updates it.
    `reported`: a plugin has listed devices since devlet started. `health_pending`: known from before a restart, and pod
    statuses still keep the health from then. `stopped` is the moment since which no instance is connected."""

    name: ResourceName
    since: Moment
    listed: bool = False
    reported: bool = False
    stale: bool = False
    health_pending: bool = False
    stopped: Moment | None = None
    devices: Devices = field(default_factory=dict)
    healthy: tuple[DeviceID, ...] = ()
    instances: list[Instance] = field(default_factory=list)  # oldest first

    @property
    def current(self) -> Instance | None:
        """The instance whose list is used and whose calls are made: the newest connected one."""
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
    """`removed` are the resources that were forgotten."""

    capacity: dict[ResourceName, int]
    allocatable: dict[ResourceName, int]
    removed: frozenset[ResourceName]


class Inventory:
    """`grace` is how long a resource stays known without a plugin, `health_grace` how long its devices keep the health
    from before a restart; both in seconds."""

    def __init__(self, grace: float, health_grace: float = HEALTH_GRACE) -> None:
        self._grace = grace
        self._health_grace = health_grace
        self._generations = count(1)
        self._resources: dict[ResourceName, Resource] = {}
        self._removed: set[ResourceName] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._resources

    def get(self, name: ResourceName) -> Resource | None:
        return self._resources.get(name)

    def resources(self) -> list[Resource]:
        return [self._resources[name] for name in sorted(self._resources)]

    # Plugins

    def restore(self, names: Iterable[ResourceName], now: Moment) -> None:
        """Add resources from before a restart: known, without devices, stopped."""
        for name in names:
            self._resources[name] = Resource(name, since=now, listed=True, stale=True, health_pending=True, stopped=now)

    def register(self, offer: Offer, options: Options, pid: int | None, now: Moment) -> tuple[Instance, list[Instance]]:
        """Return the new instance and those that it replaces: a plugin that registers the same socket again replaces
        itself, and disconnected instances are dropped."""
        resource = self._resources.setdefault(offer.resource, Resource(offer.resource, since=now))
        self._removed.discard(offer.resource)
        resource.stopped = None
        replaced = [each for each in resource.instances if each.offer.socket == offer.socket or not each.connected]
        resource.instances = [each for each in resource.instances if each not in replaced]
        instance = Instance(next(self._generations), offer, options, pid, now)
        resource.instances.append(instance)
        return instance, replaced

    def reconnect(self, instance: Instance, options: Options, pid: int | None, now: Moment) -> None:
        """Record that the instance answers again, without having registered again."""
        self._resources[instance.offer.resource].stopped = None
        instance.connected, instance.devices, instance.message = True, None, ""
        instance.options, instance.pid, instance.since = options, pid, now

    def report(self, instance: Instance, devices: Iterable[Device], now: Moment) -> Changes:
        """Record a list that the instance has sent."""
        resource = self._resource(instance)
        if resource is None:
            return frozenset()
        if instance.devices is None:
            instance.since = now
        instance.devices = {device.id: device for device in in_order(devices, key=lambda device: device.id)}
        if instance is not resource.current:
            return frozenset()
        resource.reported = True
        return _show(resource, instance.devices, stale=False)

    def disconnect(self, instance: Instance, message: str, now: Moment) -> Changes:
        """Record that the instance's stream has ended. A connected older instance becomes the current one."""
        instance.connected, instance.message, instance.since = False, message, now
        resource = self._resource(instance)
        return self._fall_back(resource, now) if resource else frozenset()

    def remove(self, instance: Instance, now: Moment) -> Changes:
        """Drop an instance that was deregistered, or that is not dialled again."""
        resource = self._resource(instance)
        if resource is None:
            return frozenset()
        resource.instances.remove(instance)
        return self._fall_back(resource, now)

    def _resource(self, instance: Instance) -> Resource | None:
        """Return None if the instance was replaced or forgotten: its last events may arrive afterwards."""
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

    # Expiry

    def expires_in(self, name: ResourceName, now: Moment) -> float | None:
        """Return the seconds until `expire_health` or `expire` affects the resource; None if a plugin is connected."""
        resource = self._resources.get(name)
        if resource is None or resource.stopped is None:
            return None
        grace = min(self._grace, self._health_grace) if resource.health_pending else self._grace
        return max(0.0, grace - (now.monotonic - resource.stopped.monotonic))

    def expire_health(self, now: Moment) -> list[ResourceName]:
        """Return the resources whose plugins have not registered within the health grace period. From now on, the
        health of their devices is unknown. Each resource is returned once."""
        found = [
            each for each in self._resources.values() if each.health_pending and self._is_health_overdue(each, now)
        ]
        for resource in found:
            resource.health_pending = False
        return [each.name for each in found]

    def _is_health_overdue(self, resource: Resource, now: Moment) -> bool:
        return resource.stopped is not None and now.monotonic - resource.stopped.monotonic >= self._health_grace

    def expire(self, now: Moment) -> list[Resource]:
        """Forget the resources that have been without a plugin for longer than the grace period, and return them."""
        gone = [each for each in self._resources.values() if each.stopped and self.is_overdue(each.stopped, now)]
        for resource in gone:
            del self._resources[resource.name]
            self._removed.add(resource.name)
        return gone

    def is_overdue(self, since: Moment, now: Moment) -> bool:
        """Return True if the grace period that began at `since` is over."""
        return now.monotonic - since.monotonic > self._grace

    def is_pending(self, name: ResourceName, now: Moment) -> bool:
        """Return True if the resource's first list is expected within the grace period: the resource is known from
        before a restart, or its plugin has just registered."""
        resource = self._resources.get(name)
        if resource is None or resource.reported or (resource.current is None and resource.instances):
            return False
        return not self.is_overdue(resource.since, now)

    # Views

    def capacity(self) -> Capacity:
        listed = [each for each in self._resources.values() if each.listed]
        return Capacity(
            {each.name: len(each.devices) for each in listed},
            {each.name: len(each.healthy) for each in listed},
            frozenset(self._removed),
        )

    def registered(self) -> dict[ResourceName, tuple[DeviceID, ...]]:
        """Return the registered devices as the checkpoint contains them: the healthy ones."""
        return {each.name: each.healthy for each in self._resources.values() if each.listed}

    def allocatable(self) -> dict[ResourceName, tuple[Device, ...]]:
        found = ((each, [each.devices[id] for id in each.healthy]) for each in self.resources())
        return {each.name: tuple(devices) for each, devices in found if devices}


def _show(resource: Resource, devices: Devices, *, stale: bool) -> Changes:
    """Make this the list of the resource. Return the devices whose health changes with it."""
    before = _healths(resource)
    resource.devices, resource.stale, resource.listed, resource.health_pending = devices, stale, True, False
    healthy = () if stale else tuple(device.id for device in devices.values() if device.is_healthy)
    if healthy != resource.healthy:  # keep the object while it is equal: `Allocations` remembers its identity
        resource.healthy = healthy
    after = _healths(resource)
    return frozenset(id for id in before.keys() | after.keys() if before.get(id, UNKNOWN) != after.get(id, UNKNOWN))


def _healths(resource: Resource) -> Mapping[DeviceID, str]:
    return {id: resource.health(id) for id in resource.devices}
