"""Pods that must be near others, or apart from them: required pod affinity and anti-affinity.

A term means pods, by their labels and namespace, and nodes that count as one place, by a label of theirs. Hardly any
pod has terms, and as long as none has, nothing is computed. Preferred terms are not looked at.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.selectors import labels as label_selectors
from devlet.objects.selectors.labels import LabelSelector, requirement
from devlet.objects.types.pod import Affinity, Pod, PodAffinity, PodAffinityTerm

__all__ = ["KEPT_AWAY", "NOT_APART", "NOT_NEAR", "SOLITARY", "Company", "LabelsOf", "Neighbours", "Social", "of_pod"]

NOT_NEAR: Final = "node(s) didn't match pod affinity rules"
NOT_APART: Final = "node(s) didn't match pod anti-affinity rules"
KEPT_AWAY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Labels = Mapping[str, str]
LabelsOf = Callable[[str], Labels]
"""Of a node or a namespace; none if it is not known."""

Place = tuple[str, str]
"""A label of nodes, and its value."""


@dataclass(frozen=True, slots=True)
class Term:
    pods: LabelSelector
    namespaces: frozenset[str]
    selected: LabelSelector  # of further namespaces
    topology_key: str

    def means(self, pod: "Social", namespace_labels: LabelsOf) -> bool:
        if not self.pods.matches(pod.labels):
            return False
        return pod.namespace in self.namespaces or self.selected.matches(namespace_labels(pod.namespace))


@dataclass(frozen=True, slots=True)
class Social:
    """A pod among pods: what others know it by, whom it has to be `near`, and from whom `apart`."""

    namespace: str
    labels: Labels
    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """The same for pods that get along with the same others."""
        return self.namespace, frozenset(self.labels.items()), self.near, self.apart


SOLITARY: Final = Social("", {})


def of_pod(pod: Pod) -> Social:
    """InvalidInput names the field that cannot be read."""
    metadata, affinity = pod.metadata, pod.spec.affinity or Affinity()
    return Social(
        metadata.namespace,
        metadata.labels,
        _terms(pod, affinity.pod_affinity, "spec.affinity.podAffinity"),
        _terms(pod, affinity.pod_anti_affinity, "spec.affinity.podAntiAffinity"),
    )


def _terms(pod: Pod, affinity: PodAffinity | None, path: str) -> tuple[Term, ...]:
    if affinity is None:
        return ()
    return tuple(_term(pod, term, f"{path}.{_REQUIRED}[{i}]") for i, term in enumerate(affinity.required))


def _term(pod: Pod, term: PodAffinityTerm, path: str) -> Term:
    """An API server has written label keys into the selector already; twice does no harm."""
    pods, labels = label_selectors.from_document(term.label_selector, f"{path}.labelSelector"), pod.metadata.labels
    same = [requirement(key, "in", (labels[key],)) for key in term.match_label_keys if key in labels]
    other = [requirement(key, "notin", (labels[key],)) for key in term.mismatch_label_keys if key in labels]
    own = () if term.namespaces or term.namespace_selector is not None else (pod.metadata.namespace,)
    return Term(
        LabelSelector((*pods.requirements, *same, *other), pods.selects_nothing),
        frozenset((*term.namespaces, *own)),
        label_selectors.from_document(term.namespace_selector, f"{path}.namespaceSelector"),
        term.topology_key,
    )


@dataclass(frozen=True, slots=True)
class Company:
    """What the pods that are there mean to one that is not yet. `near` is where those are that it has to be near, of
    which `first` needs none: there are none, and it is one of them itself."""

    near_keys: tuple[str, ...]
    near: frozenset[Place]
    first: bool
    apart: frozenset[Place]
    kept_away: frozenset[Place]

    def obstacle(self, node: Labels) -> str:
        """Why the pod must not be on the node; empty if it may."""
        if not all(key in node and (self.first or (key, node[key]) in self.near) for key in self.near_keys):
            return NOT_NEAR
        if self.apart and not self.apart.isdisjoint(node.items()):
            return NOT_APART
        return KEPT_AWAY if self.kept_away and not self.kept_away.isdisjoint(node.items()) else ""


class Neighbours:
    """The pods that have a node, or will have."""

    def __init__(self, node_labels: LabelsOf, namespace_labels: LabelsOf) -> None:
        self._node_labels = node_labels
        self._namespace_labels = namespace_labels
        self._pods: dict[PodUID, tuple[NodeName, Social]] = {}
        self._apart: dict[PodUID, tuple[NodeName, Social]] = {}  # those of them that keep others away

    def add(self, pod: PodUID, node: NodeName, social: Social) -> None:
        self._pods[pod] = node, social
        if social.apart:
            self._apart[pod] = node, social

    def remove(self, pod: PodUID) -> None:
        self._pods.pop(pod, None)
        self._apart.pop(pod, None)

    def matter_to(self, pod: Social) -> bool:
        return bool(pod.near or pod.apart or self._apart)

    def company(self, pod: Social) -> Company | None:
        """None if it does not matter to the pod who is where."""
        if not self.matter_to(pod):
            return None
        near = self._near(pod)
        return Company(
            near_keys=tuple(term.topology_key for term in pod.near),
            near=near,
            first=not near and self._means_all(pod.near, pod),
            apart=self._apart_from(pod),
            kept_away=self._kept_away_from(pod),
        )

    def _near(self, pod: Social) -> frozenset[Place]:
        """A pod counts only if all terms mean it."""
        if not pod.near:
            return frozenset()
        found = [node for node, other in list(self._pods.values()) if self._means_all(pod.near, other)]
        return self._places((node, term) for node in dict.fromkeys(found) for term in pod.near)

    def _apart_from(self, pod: Social) -> frozenset[Place]:
        if not pod.apart:
            return frozenset()
        others = list(self._pods.values())
        return self._places((node, term) for node, other in others for term in pod.apart if self._means(term, other))

    def _kept_away_from(self, pod: Social) -> frozenset[Place]:
        others = list(self._apart.values())
        return self._places((node, term) for node, other in others for term in other.apart if self._means(term, pod))

    def _places(self, found: Iterable[tuple[NodeName, Term]]) -> frozenset[Place]:
        places = ((term.topology_key, self._node_labels(node).get(term.topology_key)) for node, term in found)
        return frozenset((key, value) for key, value in places if value is not None)

    def _means_all(self, terms: Iterable[Term], pod: Social) -> bool:
        return all(self._means(term, pod) for term in terms)

    def _means(self, term: Term, pod: Social) -> bool:
        return term.means(pod, self._namespace_labels)
