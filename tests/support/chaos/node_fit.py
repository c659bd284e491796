"""What keeps a pod off a node apart from devices that are in use, read from their documents. Pure.

Covers what the pods of chaos use: requests, a node selector, tolerations, and allocated claims, but neither affinity
nor init containers. The texts are those of kube-scheduler.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from devlet.objects.documents import Document
from devlet.objects.selectors import nodes as node_selectors
from devlet.objects.values.quantity import ZERO, Quantity

__all__ = ["CORDONED", "FULL", "NOT_CHOSEN", "TAINTED", "allocatable", "obstacles", "requests"]

CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
NOT_CHOSEN = "node(s) didn't match Pod's node affinity/selector"
FULL = "Too many pods"

Amounts = dict[str, Quantity]


def obstacles(
    pod: Document, node: Document, allocated: Sequence[Document], bound: Iterable[Document], provided: Collection[str]
) -> list[str]:
    """`allocated` are claims of the pod, `bound` the pods that have a node. Resources that are `provided` by device
    classes are not asked of the node."""
    if (node.get("spec") or {}).get("unschedulable"):
        return [CORDONED]
    if not _is_tolerated(pod, node):
        return [TAINTED]
    if (pod["spec"].get("nodeSelector") or {}).items() - (node["metadata"].get("labels") or {}).items():
        return [NOT_CHOSEN]
    for claim in allocated:
        place = claim["status"]["allocation"].get("nodeSelector")
        if place and not node_selectors.parse(place).matches(node):
            return [f"the devices of claim {claim['metadata']['name']} cannot be used there"]
    here = [each for each in bound if each["spec"]["nodeName"] == node["metadata"]["name"]]
    return list(_shortages(pod, node, here, provided))


def allocatable(node: Document) -> Amounts:
    return _amounts(node["status"].get("allocatable") or {})


def requests(container: Document) -> Amounts:
    return _amounts((container.get("resources") or {}).get("requests") or {})


def _is_tolerated(pod: Document, node: Document) -> bool:
    taints = [
        each for each in (node.get("spec") or {}).get("taints") or () if each["effect"] in ("NoSchedule", "NoExecute")
    ]
    tolerations = pod["spec"].get("tolerations") or ()
    return all(any(_tolerates(each, taint) for each in tolerations) for taint in taints)


def _tolerates(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("key", taint["key"]) != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def _shortages(pod: Document, node: Document, here: Sequence[Document], provided: Collection[str]) -> Iterator[str]:
    has = allocatable(node)
    if Quantity.of(len(here)) >= has.get("pods", ZERO):
        yield FULL
    used = _sum(map(_of_pod, here))
    for name, amount in _of_pod(pod).items():
        if used.get(name, ZERO) + amount > has.get(name, ZERO) and name not in provided:
            yield f"Insufficient {name}"


def _of_pod(pod: Document) -> Amounts:
    return _sum(requests(each) for each in pod["spec"]["containers"])


def _amounts(texts: Document) -> Amounts:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for each in amounts:
        total |= {name: total.get(name, ZERO) + amount for name, amount in each.items()}
    return total
