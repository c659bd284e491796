"""Which claims a pod has, and what its containers have of each. Pure.

The claim behind a pod's extended resources is not in its spec: the scheduler makes it and names it in the status. The
status also says which of its requests is for which resource of which container."""

from collections.abc import Iterator

from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.node.claims.records import ClaimKey
from devlet.objects import pod_claims
from devlet.objects.container import Container
from devlet.objects.identifiers import ClaimName
from devlet.objects.names import extended_resource_name
from devlet.objects.pod import Pod
from devlet.objects.quantity import Quantity

__all__ = ["Wanted", "keys", "requests", "wanted"]

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


class Wanted(Struct, frozen=True):
    """One claim of a pod. `entry` is its name in the pod's spec; empty for the claim of extended resources."""

    entry: str
    key: ClaimKey
    must_be_owned: bool


def wanted(pod: Pod, *, extended: bool = True) -> tuple[Wanted, ...]:
    """In the order of the spec. A claim may be there under several names. NotFound: one is not made yet."""
    return tuple(_entries(pod, extended))


def _entries(pod: Pod, extended: bool) -> Iterator[Wanted]:
    namespace = pod.metadata.namespace
    for entry in pod.spec.resource_claims:
        found = pod_claims.resolve(pod, entry)
        if found.name is not None:
            yield Wanted(entry.name, ClaimKey(namespace, found.name), found.must_be_owned)
    status = pod.status.extended_resource_claim_status
    if extended and status is not None and status.resource_claim_name:
        yield Wanted("", ClaimKey(namespace, ClaimName(status.resource_claim_name)), must_be_owned=False)


def keys(pod: Pod, *, extended: bool = True) -> tuple[ClaimKey, ...]:
    """As far as they are known by now, each once."""
    found: dict[ClaimKey, None] = {}
    try:
        for one in _entries(pod, extended):
            found[one.key] = None
    except (NotFound, InvalidInput):
        pass
    return tuple(found)


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
