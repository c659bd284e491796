"""The quality-of-service class of a pod.

The class depends on the sums over all containers, and only on cpu and memory; an amount of zero counts as none. If the
pod itself has resources, they are used instead of those of the containers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.subdocuments import mapping, mappings
from devlet.objects.values.quantity import Quantity

__all__ = ["qos_class"]

_COUNTED = ("cpu", "memory")


def qos_class(pod: Document) -> str:
    """Return Guaranteed, Burstable or BestEffort. Invalid quantities count as absent."""
    found = list(_resources(mapping(pod, "spec") or {}))
    requests = [_amounts(resources, "requests") for resources in found]
    limits = [_amounts(resources, "limits") for resources in found]
    if not any(requests) and not any(limits):
        return "BestEffort"
    all_limited = all(len(amounts) == len(_COUNTED) for amounts in limits)
    return "Guaranteed" if all_limited and _total(requests) == _total(limits) else "Burstable"


def _resources(spec: Document) -> Iterator[Document]:
    """Yield the resources of the pod if it has any, otherwise those of each container."""
    if (resources := mapping(spec, "resources")) is not None:
        yield resources
        return
    for key in ("containers", "initContainers"):
        for container in mappings(spec, key):
            yield mapping(container, "resources") or {}


def _total(amounts: Iterable[dict[str, int]]) -> Counter[str]:
    return sum(map(Counter, amounts), Counter())


def _amounts(resources: Document, key: str) -> dict[str, int]:
    if not (found := mapping(resources, key)):
        return {}
    amounts = {name: _nano(found[name]) for name in _COUNTED if name in found}
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _nano(value: str | int | float) -> int:
    try:
        return Quantity.parse(value).nano
    except InvalidInput:
        return 0
