"""Whether a pod fits on this node, as the kubelet checks it after devices were allocated. Pure.

Extended resources that this node does not have are not counted, because another component may provide them. Neither are
those that a resource claim provides. A pod that requests them is admitted.
"""

from collections.abc import Mapping

from devlet.errors import InvalidInput
from devlet.node.reports import Rejection
from devlet.objects import names
from devlet.objects.identifiers import ResourceName
from devlet.objects.pods.requests import Amounts, added, amounts, larger, less, requests
from devlet.objects.pods.tolerations import untolerated
from devlet.objects.selectors import nodes as node_selectors
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.values.quantity import ZERO, Quantity

__all__ = ["Amounts", "added", "amounts", "lacking", "less", "mismatch", "raised", "repelled", "requests"]

_FIRST = ("pods", "cpu", "memory", "ephemeral-storage")  # checked in this order; the others by name
_NO_MATCH = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
_TAINTED = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"


def raised(allocatable: Amounts, allocated: Mapping[ResourceName, int]) -> Amounts:
    """Return the allocatable amounts, at least as large as what is allocated. Otherwise, a plugin that is away or an
    unhealthy device would cause the pods that have its devices to be rejected."""
    missing = {name: Quantity.of(number) for name, number in allocated.items()}
    return larger(allocatable, missing)


def lacking(pod: Pod, used: Amounts, allocatable: Amounts) -> Rejection | None:
    """Return a rejection for the first resource of which there is not enough."""
    wanted = {name: amount for name, amount in requests(pod).items() if _counts(name, allocatable)}
    for name in sorted(wanted, key=_order):
        has, taken, amount = allocatable.get(name, ZERO), used.get(name, ZERO), wanted[name]
        if not amount.is_zero and taken + amount > has:
            return Rejection(f"OutOf{name}", _message(name, amount, taken, has))
    return None


def mismatch(pod: Pod, node: Node) -> Rejection | None:
    """Return a rejection for a pod whose node selector or node affinity excludes this node."""
    labels = node.metadata.labels
    selected = all(labels.get(key) == value for key, value in pod.spec.node_selector.items())
    if selected and _affine(pod, node):
        return None
    return Rejection("NodeAffinity", _NO_MATCH)


def repelled(pod: Pod, node: Node) -> Rejection | None:
    """Return a rejection for a pod that a taint of the node would evict. Only the scheduler looks at other effects."""
    evicting = [taint for taint in node.spec.taints if taint.effect == "NoExecute"]
    return Rejection("TaintToleration", _TAINTED) if untolerated(evicting, pod.spec.tolerations) else None


def _affine(pod: Pod, node: Node) -> bool:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    try:
        selector = node_selectors.parsed(affinity.required)
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
