"""A pod's resource requests, as a node and the scheduler count them.

Init containers run one after the other and sidecars keep running; the result is the most that is needed at one time.
Sums are exact and rounded up at the end. A resource that a claim provides is not requested from the node, see
`claimed`.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache

from devlet.errors import InvalidInput
from devlet.objects.identifiers import ContainerName, ResourceName
from devlet.objects.types.meta import QuantityText
from devlet.objects.types.pod import Pod
from devlet.objects.values.quantity import NANO, ZERO, Quantity

__all__ = ["Amounts", "Claimed", "added", "amounts", "claimed", "larger", "less", "requests", "vector", "whole"]

Amounts = dict[ResourceName, Quantity]
Claimed = Collection[tuple[ContainerName, ResourceName]]

_MILLI = NANO // 1000

_Nanos = dict[str, int]


def amounts(texts: Mapping[str, QuantityText]) -> Amounts:
    return {ResourceName(name): Quantity.parse(text) for name, text in texts.items()}


def added(one: Amounts, other: Amounts) -> Amounts:
    return one | {name: one.get(name, ZERO) + amount for name, amount in other.items()}


def less(one: Amounts, other: Amounts) -> Amounts:
    """Return the difference; resources with nothing left are dropped."""
    left = one | {name: one.get(name, ZERO) - amount for name, amount in other.items()}
    return {name: amount for name, amount in left.items() if not amount.is_zero}


def larger(one: Amounts, other: Amounts) -> Amounts:
    return one | {name: max(one.get(name, amount), amount) for name, amount in other.items()}


def claimed(pod: Pod) -> frozenset[tuple[ContainerName, ResourceName]]:
    """Return what resource claims provide: the extended resources for which the scheduler created a claim."""
    status = pod.status.extended_resource_claim_status
    mappings = status.request_mappings if status else ()
    return frozenset((ContainerName(each.container_name), ResourceName(each.resource_name)) for each in mappings)


def requests(pod: Pod) -> Amounts:
    """Return the most that the pod needs at one time, and one pod slot."""
    found = {ResourceName(name): Quantity(nano) for name, nano in _nanos(pod, claimed(pod)).items()}
    return found | {ResourceName("pods"): Quantity.of(1)}


def vector(pod: Pod, without: Claimed | None = None) -> dict[ResourceName, int]:
    """Return the requests as integers, rounded up, without zeros and without the pod slot: cpu in thousandths, all
    others in units.

    Resources in `without` are not counted; by default these are the ones that a claim provides. Raises InvalidInput
    that names an invalid amount.
    """
    if without is None:
        without = claimed(pod) if pod.status.extended_resource_claim_status else ()
    spec = pod.spec
    if len(spec.containers) == 1 and not (spec.init_containers or without or spec.overhead or spec.resources):
        return whole(spec.containers[0].resources.requests)
    sums = _nanos(pod, without)
    return {ResourceName(name): _rounded(name, nano) for name, nano in sums.items() if nano}


def whole(texts: Mapping[str, QuantityText]) -> dict[ResourceName, int]:
    """Return amounts of resources as integers, as in `vector`."""
    return {ResourceName(name): number for name, text in texts.items() if (number := _whole(name, text))}


@lru_cache(16384)
def _whole(name: str, text: QuantityText) -> int:
    return _rounded(name, _nano(name, text))


@lru_cache(16384)
def _nano(name: str, text: QuantityText) -> int:
    try:
        return Quantity.parse(text).nano
    except InvalidInput as e:
        raise InvalidInput(f"{name}: {e}") from e


def _rounded(name: str, nano: int) -> int:
    return -(-nano // (_MILLI if name == "cpu" else NANO))


def _nanos(pod: Pod, without: Claimed) -> _Nanos:
    peak: _Nanos = {}
    together: _Nanos = {}
    for container in pod.spec.init_containers:
        running = together if container.is_sidecar else together.copy()
        _add(running, container.resources.requests, container.name, without)
        _raise(peak, running)
    for container in pod.spec.containers:
        _add(together, container.resources.requests, container.name, without)
    _raise(together, peak)
    if pod.spec.resources:
        together |= {name: _nano(name, text) for name, text in pod.spec.resources.requests.items() if _is_shared(name)}
    _add(together, pod.spec.overhead)
    return together


def _add(
    total: _Nanos, texts: Mapping[str, QuantityText], owner: ContainerName = ContainerName(""), without: Claimed = ()
) -> None:
    for name, text in texts.items():
        if not without or (owner, name) not in without:
            total[name] = total.get(name, 0) + _nano(name, text)


def _raise(one: _Nanos, other: _Nanos) -> None:
    for name, nano in other.items():
        if one.get(name, 0) < nano or name not in one:
            one[name] = nano


def _is_shared(name: str) -> bool:
    """Return whether the pod's own `resources` set this resource for all of its containers."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")
