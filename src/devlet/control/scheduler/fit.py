"""Whether a pod fits on a node, apart from its claims and pod affinity, and how well. Pure.

The reasons are those of kube-scheduler's filters, in its order, because people search for them. Topology spread
constraints are ignored.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from devlet.control.scheduler import node_choice, pod_affinity
from devlet.control.scheduler.node_choice import NodeChoice
from devlet.control.scheduler.node_use import CPU, MEMORY, NodeUse, presumed
from devlet.control.scheduler.pod_affinity import NO_AFFINITY, AffinityProfile
from devlet.objects.identifiers import NodeName, ResourceName
from devlet.objects.pods import host_ports
from devlet.objects.pods import requests as pod_requests
from devlet.objects.pods import tolerations as node_taints
from devlet.objects.pods.host_ports import Port
from devlet.objects.types.node import Node, Taint
from devlet.objects.types.pod import Pod

__all__ = [
    "CORDONED",
    "NOT_CHOSEN",
    "NO_PORTS",
    "OTHER_NODE",
    "TAINTED",
    "TOO_MANY_PODS",
    "NodeUse",
    "NodeView",
    "PodNeeds",
    "Port",
    "discouraged",
    "lacking",
    "mismatch",
    "needs_of",
    "node_view",
    "preference",
    "score",
]

CORDONED: Final = "node(s) were unschedulable"
OTHER_NODE: Final = "node(s) didn't match the requested node name"
TAINTED: Final = "node(s) had untolerated taint(s)"
NOT_CHOSEN: Final = "node(s) didn't match Pod's node affinity/selector"
NO_PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY_PODS: Final = "Too many pods"

_BEST: Final = 100

# The order in which missing resources are listed; the others follow by name.
_FIRST: Final = {"cpu": 0, "memory": 1, "ephemeral-storage": 2}


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """What a pod requires of nodes and of the pods there. `amounts` has no zeros."""

    amounts: Mapping[ResourceName, int]
    ports: frozenset[Port]
    choice: NodeChoice
    affinity: AffinityProfile = NO_AFFINITY

    @property
    def has_preferences(self) -> bool:
        return bool(self.choice.preferred)

    def without(self, provided: Collection[ResourceName]) -> "PodNeeds":
        """Return the needs without resources that DRA provides: the pod takes none of them from its node."""
        if not provided:
            return self
        return replace(self, amounts={name: n for name, n in self.amounts.items() if name not in provided})


@dataclass(frozen=True, slots=True)
class NodeView:
    """What matters to pods in a node. `taints` exclude pods, `soft_taints` (PreferNoSchedule) only rank nodes."""

    name: NodeName
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    soft_taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Mapping[ResourceName, int]
    pods: int


def needs_of(pod: Pod) -> PodNeeds:
    """Read the needs of a pod. InvalidInput names the field that cannot be read.

    A claim for extended resources counts only once the pod has a node: before, it is left over from another attempt."""
    amounts = pod_requests.vector(pod, None if pod.spec.node_name else ())
    return PodNeeds(amounts, host_ports.of_pod(pod), node_choice.of_pod(pod), pod_affinity.profile_of(pod))


def node_view(node: Node) -> NodeView:
    """Read a node. Raises InvalidInput if an amount cannot be read."""
    allocatable = pod_requests.whole(node.status.allocatable)
    return NodeView(
        name=node.name,
        labels=node.metadata.labels,
        taints=tuple(taint for taint in node.spec.taints if taint.effect in node_taints.HARD),
        soft_taints=tuple(taint for taint in node.spec.taints if taint.effect in node_taints.SOFT),
        unschedulable=node.spec.unschedulable,
        allocatable=allocatable,
        pods=allocatable.get(ResourceName("pods"), 0),
    )


def mismatch(needs: PodNeeds, node: NodeView) -> str:
    """Return why the pod must not run on the node, whatever is free there; empty if it may. Reads only
    `needs.choice`."""
    choice = needs.choice
    if node.unschedulable and not choice.ignores_cordon:
        return CORDONED
    if choice.node_name and choice.node_name != node.name:
        return OTHER_NODE
    if node.taints and node_taints.untolerated(node.taints, choice.tolerations):
        return TAINTED
    return "" if _is_chosen(choice, node) else NOT_CHOSEN


def lacking(needs: PodNeeds, node: NodeView, use: NodeUse, ignored: Collection[ResourceName] = ()) -> tuple[str, ...]:
    """Return what the node lacks for the pod. `ignored` resources are provided by DRA."""
    if needs.ports and host_ports.conflict(needs.ports, tuple(use.ports)):
        return (NO_PORTS,)
    used, has = use.used, node.allocatable
    short = [
        name
        for name, amount in needs.amounts.items()
        if used.get(name, 0) + amount > has.get(name, 0) and name not in ignored
    ]
    full = use.count >= node.pods
    return _reasons(full, short) if full or short else ()


def score(needs: PodNeeds, node: NodeView, use: NodeUse) -> int:
    """Return how much would be free with the pod on the node: 0 to 100, the mean of cpu and memory."""
    cpu, memory = presumed(needs.amounts)
    of_cpu, of_memory = node.allocatable.get(CPU, 0), node.allocatable.get(MEMORY, 0)
    free = _free(use.cpu + cpu, of_cpu) + _free(use.memory + memory, of_memory)
    return free // 2 if of_cpu and of_memory else free


def preference(needs: PodNeeds, node: NodeView) -> int:
    """Return the sum of the weights of the pod's preferred terms that the node matches."""
    return sum(weight for weight, term in needs.choice.preferred if term.matches(node.name, node.labels))


def discouraged(needs: PodNeeds, node: NodeView) -> int:
    """Return the number of soft taints of the node that the pod does not tolerate."""
    return len(node_taints.untolerated(node.soft_taints, needs.choice.tolerations)) if node.soft_taints else 0


def _is_chosen(choice: NodeChoice, node: NodeView) -> bool:
    if any(node.labels.get(key) != value for key, value in choice.node_selector):
        return False
    return choice.required is None or choice.required.matches_node(node.name, node.labels)


def _reasons(full: bool, short: Collection[ResourceName]) -> tuple[str, ...]:
    ordered = sorted(short, key=lambda name: (_FIRST.get(name, len(_FIRST)), name))
    return (*([TOO_MANY_PODS] if full else []), *(f"Insufficient {name}" for name in ordered))


def _free(used: int, total: int) -> int:
    return (total - used) * _BEST // total if used < total else 0
