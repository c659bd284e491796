"""Required pod affinity and anti-affinity.

A term selects pods by their labels and namespace, and groups nodes into topology domains by the value of a node label.
Few pods have terms; nothing is computed while no pod has any. Preferred terms are ignored.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.selectors import labels as label_selectors
from devlet.objects.selectors.labels import LabelSelector, requirement
from devlet.objects.types.pod import Affinity, Pod, PodAffinity, PodAffinityTerm

__all__ = [
    "AFFINITY_NOT_MET",
    "ANTI_AFFINITY_NOT_MET",
    "EXISTING_ANTI_AFFINITY",
    "NO_AFFINITY",
    "AffinityProfile",
    "LabelsOf",
    "PlacedPods",
    "TopologyFilter",
    "profile_of",
]

AFFINITY_NOT_MET: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_NOT_MET: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Labels = Mapping[str, str]
LabelsOf = Callable[[str], Labels]
"""Returns the labels of a node or a namespace; empty if it is unknown."""

TopologyDomain = tuple[str, str]
"""A topology key and its value."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of pod affinity or anti-affinity. `namespace_selector` selects namespaces beside the named ones."""

    pods: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector
    topology_key: str

    def matches(self, pod: "AffinityProfile", namespace_labels: LabelsOf) -> bool:
        if not self.pods.matches(pod.labels):
            return False
        return pod.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels(pod.namespace))


@dataclass(frozen=True, slots=True)
class AffinityProfile:
    """What pod affinity considers of a pod: namespace and labels, which terms of other pods may match, and its
    terms."""

    namespace: str
    labels: Labels
    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """A value that is equal for pods that pod affinity treats alike."""
        return self.namespace, frozenset(self.labels.items()), self.affinity, self.anti_affinity


NO_AFFINITY: Final = AffinityProfile("", {})


def profile_of(pod: Pod) -> AffinityProfile:
    """Read the required terms of a pod. InvalidInput names the field that cannot be read."""
    metadata, affinity = pod.metadata, pod.spec.affinity or Affinity()
    return AffinityProfile(
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
    """Read a term. An API server has merged the label keys into the selector already; merging them twice is
    harmless."""
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
class TopologyFilter:
    """Which nodes pod affinity allows for one pod.

    `allowed` holds the domains of the pods that the affinity terms select. `is_first` is True if there are no such pods
    and the pod matches its own terms: then every domain is allowed. `excluded` holds the domains that the anti-affinity
    terms rule out, and `reserved` those that the anti-affinity of placed pods does."""

    affinity_keys: tuple[str, ...]
    allowed: frozenset[TopologyDomain]
    is_first: bool
    excluded: frozenset[TopologyDomain]
    reserved: frozenset[TopologyDomain]

    def obstacle(self, node: Labels) -> str:
        """Return why the pod must not run on a node with these labels; empty if it may."""
        if not all(key in node and (self.is_first or (key, node[key]) in self.allowed) for key in self.affinity_keys):
            return AFFINITY_NOT_MET
        if self.excluded and not self.excluded.isdisjoint(node.items()):
            return ANTI_AFFINITY_NOT_MET
        return EXISTING_ANTI_AFFINITY if self.reserved and not self.reserved.isdisjoint(node.items()) else ""


class PlacedPods:
    """The pods that have a node, or for which a node was chosen, as pod affinity sees them."""

    def __init__(self, node_labels: LabelsOf, namespace_labels: LabelsOf) -> None:
        self._node_labels = node_labels
        self._namespace_labels = namespace_labels
        self._pods: dict[PodUID, tuple[NodeName, AffinityProfile]] = {}
        self._with_anti_affinity: dict[PodUID, tuple[NodeName, AffinityProfile]] = {}

    def add(self, pod: PodUID, node: NodeName, profile: AffinityProfile) -> None:
        self._pods[pod] = node, profile
        if profile.anti_affinity:
            self._with_anti_affinity[pod] = node, profile

    def remove(self, pod: PodUID) -> None:
        self._pods.pop(pod, None)
        self._with_anti_affinity.pop(pod, None)

    def affect(self, pod: AffinityProfile) -> bool:
        """Return True if it depends on the placed pods where this one may run."""
        return bool(pod.affinity or pod.anti_affinity or self._with_anti_affinity)

    def topology_filter(self, pod: AffinityProfile) -> TopologyFilter | None:
        """Compute where the pod may run; None if placed pods do not affect it."""
        if not self.affect(pod):
            return None
        allowed = self._allowed(pod)
        return TopologyFilter(
            affinity_keys=tuple(term.topology_key for term in pod.affinity),
            allowed=allowed,
            is_first=not allowed and self._matches_all(pod.affinity, pod),
            excluded=self._excluded_by(pod),
            reserved=self._reserved_from(pod),
        )

    def _allowed(self, pod: AffinityProfile) -> frozenset[TopologyDomain]:
        """Return the domains of the pods that match every affinity term."""
        if not pod.affinity:
            return frozenset()
        found = [node for node, other in list(self._pods.values()) if self._matches_all(pod.affinity, other)]
        return self._domains((node, term) for node in dict.fromkeys(found) for term in pod.affinity)

    def _excluded_by(self, pod: AffinityProfile) -> frozenset[TopologyDomain]:
        if not pod.anti_affinity:
            return frozenset()
        others = list(self._pods.values())
        return self._domains(
            (node, term) for node, other in others for term in pod.anti_affinity if self._matches(term, other)
        )

    def _reserved_from(self, pod: AffinityProfile) -> frozenset[TopologyDomain]:
        others = list(self._with_anti_affinity.values())
        return self._domains(
            (node, term) for node, other in others for term in other.anti_affinity if self._matches(term, pod)
        )

    def _domains(self, found: Iterable[tuple[NodeName, Term]]) -> frozenset[TopologyDomain]:
        domains = ((term.topology_key, self._node_labels(node).get(term.topology_key)) for node, term in found)
        return frozenset((key, value) for key, value in domains if value is not None)

    def _matches_all(self, terms: Iterable[Term], pod: AffinityProfile) -> bool:
        return all(self._matches(term, pod) for term in terms)

    def _matches(self, term: Term, pod: AffinityProfile) -> bool:
        return term.matches(pod, self._namespace_labels)
