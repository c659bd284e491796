"""Views of a resource slice: some devices of a pool, as their driver publishes them.

A pool may be spread over several slices; only those of its highest generation count. A slice has devices or shared
counters, never both.
"""

from msgspec import field

from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, NodeName, PoolName
from devlet.objects.types.meta import ObjectMeta, QuantityText, View
from devlet.objects.types.node import NodeSelector

__all__ = [
    "CapacityRange",
    "CapacityRequestPolicy",
    "Counter",
    "CounterConsumption",
    "CounterSet",
    "Device",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceTaint",
    "NodeAllocatableMapping",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


class DeviceAttribute(View, frozen=True, kw_only=True):
    """An attribute. Exactly one field is set."""

    int_: int | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] = ()
    bools: tuple[bool, ...] = ()
    strings: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


class CapacityRange(View, frozen=True, kw_only=True):
    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(View, frozen=True, kw_only=True):
    """How much of a shared capacity one claim may take: one of the values, or an amount in the range."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(View, frozen=True, kw_only=True):
    value: QuantityText = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(View, frozen=True, kw_only=True):
    value: QuantityText = "0"


class CounterConsumption(View, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class CounterSet(View, frozen=True, kw_only=True):
    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceTaint(View, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeAllocatableMapping(View, frozen=True, kw_only=True):
    """How much of a node's resource the device takes: the multiplier, times a capacity if one is named."""

    capacity_key: str | None = None
    allocation_multiplier: QuantityText | None = None


class Device(View, frozen=True, kw_only=True):
    """A device. Names of attributes and capacities without a domain belong to the driver's domain."""

    name: DeviceName = DeviceName("")
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableMapping] = field(default_factory=dict)


class ResourcePool(View, frozen=True, kw_only=True):
    name: PoolName = PoolName("")
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(View, frozen=True, kw_only=True):
    driver: DriverName = DriverName("")
    pool: ResourcePool = ResourcePool()
    node_name: NodeName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()

    def identity(self, device: Device) -> DeviceIdentity:
        """Return the identity of one of its devices."""
        return DeviceIdentity(self.spec.driver, self.spec.pool.name, device.name)
