"""What a container has of its pod's claims. Pure: the book's entries in, devices and CDI names out."""

from collections.abc import Callable, Iterable, Iterator

from devlet.errors import NotPrepared
from devlet.node.claims.book import parts
from devlet.node.claims.checks import main
from devlet.node.claims.records import ClaimKey, ContainerClaim, DriverPart
from devlet.node.claims.wanted import Wanted, requests
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.state.claim_entry import ClaimEntry

__all__ = ["cdi_devices", "container_claims", "is_for"]

Find = Callable[[ClaimKey], ClaimEntry | None]


def container_claims(
    pod: Pod, container: Container, claims: Iterable[Wanted], find: Find
) -> Iterator[tuple[Wanted, ContainerClaim | None]]:
    """In the order of the pod's claims. None: the claim is not prepared for this pod."""
    for one in claims:
        for request in requests(pod, container, one):
            entry = find(one.key)
            if entry is None or pod.uid not in (entry.pods or ()):
                yield one, None
            else:
                yield one, ContainerClaim(one.entry, request, one.key, _restricted(entry, request))


def cdi_devices(found: Iterable[tuple[Wanted, ContainerClaim | None]]) -> tuple[str, ...]:
    """Each once, in the order of claims, drivers and devices. NotPrepared if one is not there."""
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
    """A device without requests is for all; a container without request wants all."""
    return not request or not device.requests or main(request) in map(main, device.requests)
