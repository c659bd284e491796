"""The devices of claims in a container's `allocatedResourcesStatus`. Pure.

API servers accept a status only if each of its names belongs to the container: `claim:NAME` or `claim:NAME/REQUEST` for
an entry of its claims, or a resource that it requests. The claim behind extended resources is not among the container's
claims, and servers up to 1.36 reject the whole status because of its name. So its devices are listed under the name of
the resource that they satisfy, like those of a device plugin.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from devlet.node.claims.health import Health
from devlet.node.claims.pod_claims import is_for
from devlet.node.claims.records import ContainerClaim
from devlet.objects.identifiers import ContainerName, DeviceIdentity, DeviceName, DriverName, PoolName, ResourceName
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.container import ResourceHealth, ResourceStatus
from devlet.objects.types.pod import Pod

__all__ = ["extended_resources", "statuses"]


def extended_resources(pod: Pod, container: ContainerName) -> dict[str, ResourceName]:
    """Return, for each request of the claim behind extended resources, the container's resource that it satisfies."""
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
    """Return the devices of a container's claims and their health, in the order of claims, drivers and devices. Each
    device is listed once under a name, and names without devices are left out. `resources` is what `extended_resources`
    returns for the container."""
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
    """Return an unused id for the device. The first CDI device may be shared by all devices of a driver, but can
    identify only one of them."""
    if device.cdi_devices and device.cdi_devices[0] not in taken:
        return device.cdi_devices[0]
    return str(identity)


def _identity(driver: DriverName, device: PreparedDevice) -> DeviceIdentity:
    return DeviceIdentity(driver, PoolName(device.pool), DeviceName(device.device))


def _entry(id: str, health: Health, messages: bool) -> ResourceHealth:
    message = health.message if messages and health.message else None
    return ResourceHealth(resource_id=id, health=health.status, message=message)
