"""Which claims a pod has, and what its containers have of each. Pure.

The claim behind a pod's extended resources is not in its spec: the scheduler makes it and names it in the status. The
status also says which of its requests is for which resource of which container."""

from collections.abc import Iterator

from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import ClaimName
from devlet.objects.names import extended_resource_name
from devlet.objects.pods import claims as pod_claims
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod, PodResourceClaim
from devlet.objects.values.quantity import Quantity

__all__ = ["Wanted", "keys", "known", "requests", "wanted"]

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


class Wanted(Struct, frozen=True):
    """One claim of a pod. `entry` is its name in the pod's spec; empty for the claim of extended resources."""

    entry: str
    key: ClaimKey
    must_be_owned: bool


def wanted(pod: Pod, *, extended: bool = True) -> tuple[Wanted, ...]:
    """In the order of the spec. A claim may be there under several names. NotFound: one is not made yet."""
    found = [_of_entry(pod, entry) for entry in pod.spec.resource_claims]
    return (*(one for one in found if one is not None), *_extended(pod, extended))


def known(pod: Pod, *, extended: bool = True) -> tuple[Wanted, ...]:
    """The same, without those that are not made yet."""
    found: list[Wanted] = []
    for entry in pod.spec.resource_claims:
        try:
            if (one := _of_entry(pod, entry)) is not None:
                found.append(one)
        except (NotFound, InvalidInput):
            continue
    return (*found, *_extended(pod, extended))


def _of_entry(pod: Pod, entry: PodResourceClaim) -> Wanted | None:
    found = pod_claims.resolve(pod, entry)
    if found.name is None:
        return None
    return Wanted(entry.name, ClaimKey(pod.metadata.namespace, found.name), found.must_be_owned)


def _extended(pod: Pod, extended: bool) -> Iterator[Wanted]:
    status = pod.status.extended_resource_claim_status
    if extended and status is not None and status.resource_claim_name:
        key = ClaimKey(pod.metadata.namespace, ClaimName(status.resource_claim_name))
        yield Wanted("", key, must_be_owned=False)


def keys(pod: Pod, *, extended: bool = True) -> tuple[ClaimKey, ...]:
    """Of those that are known, each once."""
    return tuple(dict.fromkeys(one.key for one in known(pod, extended=extended)))


def requests(pod: Pod, container: Container, one: Wanted) -> tuple[str, ...]:
    """What of the claim is for this container: names of requests, `""` for all of them, nothing for none."""
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
