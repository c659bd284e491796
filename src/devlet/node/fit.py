"""Whether a pod fits on this node, as the kubelet checks it after devices were allocated. Pure.

A resource with a domain that this node never heard of is somebody else's business: it is not counted, and neither is
one that a resource claim provides. A pod that asks for it is admitted without.
"""

from collections.abc import Iterable, Mapping

import msgspec

from devlet.errors import InvalidInput
from devlet.node.devices import limits
from devlet.node.rejection import Rejection
from devlet.objects import names, node_selectors
from devlet.objects.container import Container
from devlet.objects.identifiers import ContainerName, ResourceName
from devlet.objects.meta import QuantityText
from devlet.objects.node import Node
from devlet.objects.pod import Pod
from devlet.objects.quantity import ZERO, Quantity

__all__ = ["Amounts", "added", "amounts", "lacking", "less", "mismatch", "raised", "requests"]

Amounts = dict[ResourceName, Quantity]

_FIRST = ("pods", "cpu", "memory", "ephemeral-storage")  # the order in which lacks are told; the others by name
_OF_THE_POD = ("cpu", "memory")  # what spec.resources decides for all containers, besides huge pages
_NO_MATCH = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"


def amounts(texts: Mapping[str, QuantityText]) -> Amounts:
    return {ResourceName(name): Quantity.parse(text) for name, text in texts.items()}


def requests(pod: Pod) -> Amounts:
    """The most that the pod needs at one time, and one place for a pod."""
    claimed = limits.claimed(pod)
    peak: Amounts = {}
    together: Amounts = {}
    for container in pod.spec.init_containers:
        wanted = _of_container(container, claimed)
        peak = _larger(peak, added(together, wanted))
        if container.is_sidecar:
            together = added(together, wanted)
    for container in pod.spec.containers:
        together = added(together, _of_container(container, claimed))
    found = _larger(peak, together) | _of_pod(pod)
    return added(found, amounts(pod.spec.overhead)) | {ResourceName("pods"): Quantity.of(1)}


def added(one: Amounts, other: Amounts) -> Amounts:
    return one | {name: one.get(name, ZERO) + amount for name, amount in other.items()}


def less(one: Amounts, other: Amounts) -> Amounts:
    """What is left; nothing of a resource is the same as none at all."""
    left = one | {name: one.get(name, ZERO) - amount for name, amount in other.items()}
    return {name: amount for name, amount in left.items() if not amount.is_zero}


def raised(allocatable: Amounts, allocated: Mapping[ResourceName, int]) -> Amounts:
    """What can be allocated is never less than what is: a plugin that is away or a sick device must not turn away
    the pods that have its devices."""
    missing = {name: Quantity.of(number) for name, number in allocated.items()}
    return _larger(allocatable, missing)


def lacking(pod: Pod, used: Amounts, allocatable: Amounts) -> Rejection | None:
    """The first resource that does not suffice."""
    wanted = {name: amount for name, amount in requests(pod).items() if _counts(name, allocatable)}
    for name in sorted(wanted, key=_order):
        has, taken, amount = allocatable.get(name, ZERO), used.get(name, ZERO), wanted[name]
        if not amount.is_zero and taken + amount > has:
            return Rejection(f"OutOf{name}", _message(name, amount, taken, has))
    return None


def mismatch(pod: Pod, node: Node) -> Rejection | None:
    """For a pod whose node selector or node affinity excludes this node."""
    labels = node.metadata.labels
    selected = all(labels.get(key) == value for key, value in pod.spec.node_selector.items())
    if selected and _affine(pod, node):
        return None
    return Rejection("NodeAffinity", _NO_MATCH)


def _affine(pod: Pod, node: Node) -> bool:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    try:
        selector = node_selectors.parse(msgspec.json.decode(msgspec.json.encode(affinity.required)))
    except InvalidInput:
        return False
    return selector.matches_node(node.name, node.metadata.labels)


def _counts(name: ResourceName, allocatable: Amounts) -> bool:
    return name in allocatable or bool(names.extended_resource_name(name))


def _order(name: ResourceName) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _message(name: ResourceName, requested: Quantity, used: Quantity, capacity: Quantity) -> str:
    shown = [each.as_milli() if name == "cpu" else each.as_int() for each in (requested, used, capacity)]
    return "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}".format(name, *shown)


def _of_container(container: Container, claimed: Iterable[tuple[ContainerName, ResourceName]]) -> Amounts:
    found = amounts(container.resources.requests)
    for owner, name in claimed:
        if owner == container.name:
            found.pop(name, None)
    return found


def _of_pod(pod: Pod) -> Amounts:
    found = amounts(pod.spec.resources.requests) if pod.spec.resources else {}
    return {name: each for name, each in found.items() if name in _OF_THE_POD or name.startswith("hugepages-")}


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return one | {name: max(one.get(name, amount), amount) for name, amount in other.items()}
