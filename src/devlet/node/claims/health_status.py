"""The devices of claims in a container's `allocatedResourcesStatus`. Pure.

API servers take a status only if every name in it is one of the container's: `claim:NAME` or `claim:NAME/REQUEST` for
an entry of its claims as it stands there, otherwise a resource that it requests. The claim behind extended resources is
none of the container's, and servers up to 1.36 refuse the whole status for its name. So its devices stand under the
name of the resource for which they are, as those of a device plugin would.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from devlet.node.claims.health import Health
from devlet.node.claims.reading import is_for
from devlet.node.claims.records import ContainerClaim
from devlet.objects.identifiers import ContainerName, DeviceIdentity, DeviceName, DriverName, PoolName, ResourceName
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.container import ResourceHealth, ResourceStatus
from devlet.objects.types.pod import Pod

__all__ = ["extended_resources", "statuses"]


def extended_resources(pod: Pod, container: ContainerName) -> dict[str, ResourceName]:
    """Which resource of the container each request of the claim behind its extended resources is for."""
    status = pod.status.extended_resource_claim_status
    mappings = status.request_mappings if status else ()
    return {
        each.request_name: ResourceName(each.resource_name) for each in mappings if each.container_name == container
    }


def statuses(
    claims: Sequence[ContainerClaim],
    health: Callable[[DeviceIdentity], Health],
    *,
    messages: bool,
    resources: Mapping[str, ResourceName],
) -> tuple[ResourceStatus, ...]:
    """What a container has of its claims and how that is: in the order of claims, drivers and devices, each device once
    under a name, and no name without devices. `resources` is what `extended_resources` gives for the container."""
    found: dict[str, dict[DeviceIdentity, ResourceHealth]] = {}
    for claim in claims:
        if (name := _name(claim, resources)) is not None:
            under = found.setdefault(name, {})
            for driver, device in _devices(claim):
                identity = _identity(driver, device)
                if identity not in under:
                    id = _id(identity, device, {each.resource_id for each in under.values()})
                    under[identity] = _entry(id, health(identity), messages)
    return tuple(ResourceStatus(name=name, resources=tuple(under.values())) for name, under in found.items() if under)


def _name(claim: ContainerClaim, resources: Mapping[str, ResourceName]) -> str | None:
    if not claim.pod_claim:
        return resources.get(claim.request)
    return f"claim:{claim.pod_claim}/{claim.request}" if claim.request else f"claim:{claim.pod_claim}"


def _devices(claim: ContainerClaim) -> Iterator[tuple[DriverName, PreparedDevice]]:
    for part in claim.drivers:
        yield from ((part.driver, device) for device in part.devices or () if is_for(device, claim.request))


def _id(identity: DeviceIdentity, device: PreparedDevice, taken: Collection[str]) -> str:
    """Drivers may begin with a CDI device that all of their devices share; it can stand for one of them only."""
    if device.cdi_devices and device.cdi_devices[0] not in taken:
        return device.cdi_devices[0]
    return str(identity)


def _identity(driver: DriverName, device: PreparedDevice) -> DeviceIdentity:
    return DeviceIdentity(driver, PoolName(device.pool), DeviceName(device.device))


def _entry(id: str, health: Health, messages: bool) -> ResourceHealth:
    message = health.message if messages and health.message else None
    return ResourceHealth(resource_id=id, health=health.status, message=message)
