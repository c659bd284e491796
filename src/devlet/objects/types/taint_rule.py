"""Views of administrators' objects about devices: taint rules, and requests for pool status.

A rule without a selector matches no device; a rule with an empty selector matches all.
"""

from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, NodeName, PoolName
from devlet.objects.types.meta import Condition, ObjectMeta, View
from devlet.objects.types.slice import DeviceTaint

__all__ = [
    "DeviceTaintRule",
    "DeviceTaintRuleSpec",
    "DeviceTaintRuleStatus",
    "DeviceTaintSelector",
    "PoolStatus",
    "ResourcePoolStatusRequest",
    "ResourcePoolStatusRequestSpec",
    "ResourcePoolStatusRequestStatus",
]


class DeviceTaintSelector(View, frozen=True, kw_only=True):
    driver: DriverName | None = None
    pool: PoolName | None = None
    device: DeviceName | None = None

    def matches(self, identity: DeviceIdentity) -> bool:
        return (
            self.driver in (None, identity.driver)
            and self.pool in (None, identity.pool)
            and self.device in (None, identity.device)
        )


class DeviceTaintRuleSpec(View, frozen=True, kw_only=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(View, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()

    def matches(self, identity: DeviceIdentity) -> bool:
        selector = self.spec.device_selector
        return selector is not None and selector.matches(identity)


class ResourcePoolStatusRequestSpec(View, frozen=True, kw_only=True):
    driver: DriverName = DriverName("")
    pool_name: PoolName | None = None
    limit: int | None = None


class PoolStatus(View, frozen=True, kw_only=True):
    """The status of a pool. If the pool is incomplete the counts are unset, and `validation_error` says why."""

    driver: DriverName = DriverName("")
    pool_name: PoolName = PoolName("")
    node_name: NodeName | None = None
    total_devices: int | None = None
    allocated_devices: int | None = None
    available_devices: int | None = None
    unavailable_devices: int | None = None
    resource_slice_count: int | None = None
    generation: int = 0
    validation_error: str | None = None


class ResourcePoolStatusRequestStatus(View, frozen=True, kw_only=True):
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    pool_count: int | None = None


class ResourcePoolStatusRequest(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourcePoolStatusRequestSpec = ResourcePoolStatusRequestSpec()
    status: ResourcePoolStatusRequestStatus | None = None
