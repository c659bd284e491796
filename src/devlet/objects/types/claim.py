"""Views of resource claims and templates: the devices that are wanted, and those that are allocated.

A request is either `exactly` or a list of alternatives (`first_available`, in order of preference). Results name the
request that they satisfy, an alternative as `request/subrequest`.
"""

from typing import Any

from msgspec import Struct, field

from devlet.objects.identifiers import (
    ClaimName,
    ClaimUID,
    DeviceClassName,
    DeviceIdentity,
    DeviceName,
    DriverName,
    PoolName,
    RequestRef,
    ShareID,
    ShareIdentity,
)
from devlet.objects.types.device_class import DeviceConfiguration, DeviceSelector
from devlet.objects.types.meta import Condition, Nullable, ObjectMeta, QuantityText, View, empty_if_null
from devlet.objects.types.node import NodeSelector

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "CapacityRequirements",
    "ConsumerReference",
    "DeviceAllocation",
    "DeviceAllocationConfiguration",
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceConstraint",
    "DeviceRequest",
    "DeviceResult",
    "DeviceSubRequest",
    "DeviceToleration",
    "ExactDeviceRequest",
    "NetworkDeviceData",
    "PreparedDevice",
    "ResourceClaim",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
]


class DeviceToleration(View, frozen=True, kw_only=True):
    """A toleration. An empty key matches all keys, an empty effect all effects."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(View, frozen=True, kw_only=True):
    requests: dict[str, QuantityText] = field(default_factory=dict)


class ExactDeviceRequest(View, frozen=True, kw_only=True):
    device_class_name: DeviceClassName = DeviceClassName("")
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(View, frozen=True, kw_only=True):
    """An alternative of a request. It cannot ask for admin access."""

    name: str = ""
    device_class_name: DeviceClassName = DeviceClassName("")
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(View, frozen=True, kw_only=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(View, frozen=True, kw_only=True):
    """A constraint. Without `requests` it applies to all requests of the claim."""

    requests: tuple[RequestRef, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(DeviceConfiguration, frozen=True, kw_only=True):
    """A configuration. Without `requests` it applies to all requests of the claim."""

    requests: tuple[RequestRef, ...] = ()


class DeviceClaim(View, frozen=True, kw_only=True):
    requests: Nullable[DeviceRequest] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()

    def __post_init__(self) -> None:
        empty_if_null(self, "requests")


class ResourceClaimSpec(View, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceResult(View, frozen=True, kw_only=True):
    """A device that is allocated for a request."""

    request: RequestRef = RequestRef("")
    driver: DriverName = DriverName("")
    pool: PoolName = PoolName("")
    device: DeviceName = DeviceName("")
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: ShareID | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, QuantityText] = field(default_factory=dict)

    @property
    def identity(self) -> DeviceIdentity:
        return DeviceIdentity(self.driver, self.pool, self.device)

    @property
    def share(self) -> ShareIdentity | None:
        """Return the share that is held, if the device may be allocated several times."""
        return ShareIdentity(self.identity, self.share_id) if self.share_id else None


class DeviceAllocationConfiguration(DeviceConfiguration, frozen=True, kw_only=True):
    source: str = ""
    requests: tuple[RequestRef, ...] = ()


class DeviceAllocation(View, frozen=True, kw_only=True):
    results: tuple[DeviceResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(View, frozen=True, kw_only=True):
    """An allocation. Without a node selector the devices can be used on every node."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(View, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class NetworkDeviceData(View, frozen=True, kw_only=True):
    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(View, frozen=True, kw_only=True):
    """The driver's report about a device that it has prepared."""

    driver: DriverName = DriverName("")
    pool: PoolName = PoolName("")
    device: DeviceName = DeviceName("")
    share_id: ShareID | None = field(default=None, name="shareID")
    conditions: Nullable[Condition] = ()
    data: Any = None
    network_data: NetworkDeviceData | None = None

    def __post_init__(self) -> None:
        empty_if_null(self, "conditions")

    @property
    def identity(self) -> DeviceIdentity:
        return DeviceIdentity(self.driver, self.pool, self.device)


class ResourceClaimStatus(View, frozen=True, kw_only=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def name(self) -> ClaimName:
        return ClaimName(self.metadata.name)

    @property
    def uid(self) -> ClaimUID:
        return ClaimUID(self.metadata.uid)

    @property
    def results(self) -> tuple[DeviceResult, ...]:
        """Return the devices that the claim holds; empty if it is not allocated."""
        return self.status.allocation.devices.results if self.status.allocation else ()


class ResourceClaimTemplateSpec(View, frozen=True, kw_only=True):
    """The template of a claim. Labels and annotations of `metadata`, and all of `spec`, are copied into each claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class PreparedDevice(Struct, frozen=True):
    """A prepared device. Without requests it is for all of them. None and empty are different in the file, so they
    differ here."""

    pool: str
    device: str
    share: str | None = None
    requests: tuple[str, ...] | None = None
    cdi_devices: tuple[str, ...] | None = None
