"""The claims of a pod, and what its containers get of each. Pure.

The claim behind a pod's extended resources is not in its spec: the scheduler creates it and names it in the pod's
status. The status also says which of its requests belongs to which resource of which container.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from devlet.errors import InvalidInput, NotFound, NotPrepared
from devlet.node.claims.claim_info_cache import parts
from devlet.node.claims.records import ClaimKey, ContainerClaim, DriverPart
from devlet.objects.identifiers import ClaimName
from devlet.objects.names import extended_resource_name
from devlet.objects.pods import claims as entries
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod, PodResourceClaim
from devlet.objects.values.quantity import Quantity
from devlet.state.claim_entry import ClaimEntry

__all__ = [
    "PodClaim",
    "base_request",
    "cdi_devices",
    "container_claims",
    "created",
    "is_for",
    "keys",
    "of_pod",
    "requests",
]

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

Find = Callable[[ClaimKey], ClaimEntry | None]


class PodClaim(Struct, frozen=True):
    """One claim of a pod. `entry` is its name in the pod's spec, or empty for the claim of extended resources."""

    entry: str
    key: ClaimKey
    must_be_owned: bool


def of_pod(pod: Pod, *, extended: bool = True) -> tuple[PodClaim, ...]:
    """Return the pod's claims in the order of its spec. A claim may be listed under several names. Raise NotFound if
    one has not been created yet."""
    found = [_of_entry(pod, entry) for entry in pod.spec.resource_claims]
    return (*(one for one in found if one is not None), *_extended(pod, extended))


def created(pod: Pod, *, extended: bool = True) -> tuple[PodClaim, ...]:
    """Return the same as `of_pod`, without the claims that have not been created yet."""
    found: list[PodClaim] = []
    for entry in pod.spec.resource_claims:
        try:
            if (one := _of_entry(pod, entry)) is not None:
                found.append(one)
        except (NotFound, InvalidInput):
            continue
    return (*found, *_extended(pod, extended))


def _of_entry(pod: Pod, entry: PodResourceClaim) -> PodClaim | None:
    found = entries.resolve(pod, entry)
    if found.name is None:
        return None
    return PodClaim(entry.name, ClaimKey(pod.metadata.namespace, found.name), found.must_be_owned)


def _extended(pod: Pod, extended: bool) -> Iterator[PodClaim]:
    status = pod.status.extended_resource_claim_status
    if extended and status is not None and status.resource_claim_name:
        key = ClaimKey(pod.metadata.namespace, ClaimName(status.resource_claim_name))
        yield PodClaim("", key, must_be_owned=False)


def keys(pod: Pod, *, extended: bool = True) -> tuple[ClaimKey, ...]:
    """Return the keys of the claims that have been created, each once."""
    return tuple(dict.fromkeys(one.key for one in created(pod, extended=extended)))


def requests(pod: Pod, container: Container, one: PodClaim) -> tuple[str, ...]:
    """Return the requests of the claim that the container uses: `("",)` for all of them, empty for none."""
    if one.entry:
        named = [claim.request for claim in container.resources.claims if claim.name == one.entry]
    else:
        named = list(_mapped(pod, container))
    return ("",) if "" in named else tuple(dict.fromkeys(named))


def _mapped(pod: Pod, container: Container) -> Iterator[str]:
    status = pod.status.extended_resource_claim_status
    for mapping in status.request_mappings if status else ():
        if mapping.container_name == container.name and _asks_for(container, mapping.resource_name):
            yield mapping.request_name


def _asks_for(container: Container, resource: str) -> bool:
    amount = container.resources.requests.get(resource) or container.resources.limits.get(resource)
    if amount is None or Quantity.parse(amount).is_zero:
        return False
    return resource.startswith(CLASS_PREFIX) or not extended_resource_name(resource)


def container_claims(
    pod: Pod, container: Container, claims: Iterable[PodClaim], find: Find
) -> Iterator[tuple[PodClaim, ContainerClaim | None]]:
    """Yield what the container has of each claim, in the order of the pod's claims: None if the claim is not prepared
    for this pod."""
    for one in claims:
        for request in requests(pod, container, one):
            entry = find(one.key)
            if entry is None or pod.uid not in (entry.pods or ()):
                yield one, None
            else:
                yield one, ContainerClaim(one.entry, request, one.key, _restricted(entry, request))


def cdi_devices(found: Iterable[tuple[PodClaim, ContainerClaim | None]]) -> tuple[str, ...]:
    """Return each CDI device once, in the order of claims, drivers and devices. Raise NotPrepared if a claim is not
    prepared."""
    names: dict[str, None] = {}
    for one, claim in found:
        if claim is None:
            raise NotPrepared(f"ResourceClaim {one.key.name} is not prepared for this pod")
        for part in claim.drivers:
            if part.devices is None:
                raise NotPrepared(f"ResourceClaim {one.key.name}: driver {part.driver} has not prepared it")
            names.update((name, None) for device in part.devices for name in device.cdi_devices or ())
    return tuple(names)


def _restricted(entry: ClaimEntry, request: str) -> tuple[DriverPart, ...]:
    found = []
    for part in parts(entry):
        devices = None if part.devices is None else tuple(d for d in part.devices if is_for(d, request))
        found.append(DriverPart(part.driver, devices))
    return tuple(found)


def is_for(device: PreparedDevice, request: str) -> bool:
    """Return True if a container with this request gets the device. A device without requests belongs to all of them;
    a container without a request gets all devices."""
    return not request or not device.requests or base_request(request) in map(base_request, device.requests)


def base_request(request: str) -> str:
    """Return the request of `request/subrequest`. Containers cannot name subrequests."""
    return request.partition("/")[0]
