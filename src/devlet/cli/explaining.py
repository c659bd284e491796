"""The work of `devlet explain`: find the pod or claim, ask the allocator, and describe the result."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain import explain
from devlet.alloc.explain.report import Explanation, NodeReport
from devlet.alloc.features import Rules
from devlet.cli.allocation_input import Objects, text_of
from devlet.cli.allocation_source import Source
from devlet.cli.allocation_subject import Subject, claim_subject, pod_subject
from devlet.cli.session import Document
from devlet.cli.views import allocated, explanation, explanation_document
from devlet.control.search_time import FILTER_TIMEOUT, SearchTime
from devlet.errors import InvalidInput, NotFound
from devlet.objects.claims.overlaps import Overlap
from devlet.objects.identifiers import DriverName, ObjectKey
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node

__all__ = ["Answer", "Question", "answer", "objects_for"]

_TYPES: Final = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("claim", "claims", "resourceclaim", "resourceclaims", "resourceclaims.resource.k8s.io"), "claim"),
}


@dataclass(frozen=True, slots=True)
class Question:
    """What to explain. `kind` is pod, claim, or empty for either of them."""

    kind: str
    key: ObjectKey
    node: str = ""
    all_nodes: bool = False
    seconds: float = FILTER_TIMEOUT

    @staticmethod
    def parse(arguments: Sequence[str], namespace: str) -> "Question":
        words = arguments[0].split("/") if len(arguments) == 1 else list(arguments)
        if len(words) == 1:
            words = ["", *words]
        if len(words) != 2 or not words[1]:
            raise InvalidInput("name one pod or claim: NAME, pod/NAME or claim/NAME")
        type_, name = words
        if type_ and type_.lower() not in _TYPES:
            raise InvalidInput(f'cannot explain "{type_}", only pods and claims: use pod/{name} or claim/{name}')
        return Question(_TYPES.get(type_.lower(), ""), (namespace, name))


@dataclass(frozen=True, slots=True)
class Answer:
    """The explanation. `found` covers unallocated claims on all `nodes`; `reports` cover the allocated claims.

    `is_reference` means that it describes what Kubernetes would do.
    """

    subject: Subject
    found: Explanation | None
    nodes: int
    is_reference: bool
    excluded: Counter[str]
    claims: tuple[Document, ...]
    reports: tuple[NodeReport, ...]
    hidden: tuple[tuple[DriverName, str], ...] = ()  # drivers that are gone, each with its node
    overlaps: tuple[Overlap, ...] = ()  # of the allocated claims with others

    def document(self) -> Document:
        subject, (namespace, name) = self.subject, self.subject.key
        head: Document = {"kind": subject.kind, "namespace": namespace, "name": name}
        if subject.made:
            head["notCreatedYet"] = list(subject.made)
        if self.excluded:
            head["excludedNodes"] = [{"text": text, "nodes": count} for text, count in self.excluded.most_common()]
        if self.hidden:
            head["goneDrivers"] = [{"driver": driver, "node": node} for driver, node in self.hidden]
        if self.overlaps:
            head["overlaps"] = [_overlap(each) for each in self.overlaps]
        if self.claims:
            head["allocated"] = [_brief(claim) for claim in self.claims]
        return head | (explanation_document.document(self.found) if self.found else {"fits": not subject.claims})

    def lines(self, now: datetime, *, wide: bool, all_nodes: bool) -> Iterator[str]:
        subject = self.subject
        if self.found:
            yield from explanation.lines(subject.text, self.found, self.nodes, wide=wide, all_nodes=all_nodes)
        elif subject.claims:
            yield f"{subject.text} does not fit: every node is excluded"
        else:
            yield _settled(subject)
        if self.overlaps:
            yield from allocated.overlap_lines(self.overlaps)
        yield from self._notes()
        if self.claims:
            yield from allocated.lines(self.claims, self.reports, now, wide=wide)

    def _notes(self) -> Iterator[str]:
        notes = [f"Excluded: {_counted(count)}: {reason}" for reason, count in self.excluded.most_common()]
        notes += [
            f"Excluded: devices of driver {driver}, which is gone from node {node}" for driver, node in self.hidden
        ]
        if self.found and self.found.fits and self.is_reference:
            failing = [node.node for node in self.found.nodes if node.outcome == "error"]
            notes += [f"An error on node {name} makes kube-scheduler give up on all nodes" for name in failing[:1]]
        notes += [f"Claim {name} does not exist yet: its template was used" for name in self.subject.made]
        yield from ["", *notes] if notes else ()


def _counted(nodes: int) -> str:
    return f"{nodes} node" if nodes == 1 else f"{nodes} nodes"


def _settled(subject: Subject) -> str:
    pod = subject.pod
    if pod is None:
        return f"{subject.text} is allocated"
    count = len(subject.allocated)
    claims = {0: "it needs no claims", 1: "its claim is allocated"}.get(count, f"all its {count} claims are allocated")
    return f"{subject.text}: {claims}" + (
        f", and it is bound to node {pod.spec.node_name}" if pod.spec.node_name else ", but it is not bound to a node"
    )


def _overlap(found: Overlap) -> Document:
    return {"text": found.text, "claims": [text_of(claim) for claim in found.claims]}


def _brief(claim: Document) -> Document:
    metadata, status = claim["metadata"], claim["status"]
    return {"namespace": metadata.get("namespace", ""), "name": metadata["name"], "status": status}


def objects_for(question: Question, source: Source) -> Objects:
    """Read the objects, with the pod to explain and the templates that it names."""
    objects, server, key = source.objects(pods=False), source.server, question.key
    if server is None or question.kind == "claim":
        return objects
    if key in objects.pods or server.add(objects, "pods", key):
        for entry in objects.pods[key].spec.resource_claims:
            if entry.resource_claim_template_name:
                server.add(objects, "resourceclaimtemplates", (key[0], entry.resource_claim_template_name))
    return objects


def answer(question: Question, objects: Objects, rules: Rules) -> Answer:
    subject, hide = _subject(question, objects), not rules.is_reference
    nodes = _nodes(question, objects)
    excluded = Counter(reason for node in nodes if (reason := subject.excludes(node)))
    left = [node for node in nodes if not subject.excludes(node)]
    found = None
    if subject.claims and left:
        found = _explained(question, Allocator(objects.inventory(hide=hide), rules=rules), left, subject.claims)
    claims = [objects.documents[claim.metadata.namespace, claim.metadata.name] for claim in subject.allocated]
    reports = _passed_over(question, objects, rules, subject, left)
    counted = excluded if subject.claims else Counter[str]()
    hidden = tuple(objects.hidden_drivers()) if hide and subject.claims else ()
    overlaps = tuple(_overlaps(objects, subject))
    return Answer(
        subject, found, len(left), rules.is_reference, counted, tuple(claims), tuple(reports), hidden, overlaps
    )


def _overlaps(objects: Objects, subject: Subject) -> Iterable[Overlap]:
    """Return the overlaps of the claims that have devices, each once."""
    if not subject.allocated:
        return ()
    ledger = objects.ledger()
    keys = ((claim.metadata.namespace, claim.metadata.name) for claim in subject.allocated)
    return dict.fromkeys(found for key in keys for found in ledger.of(key))


def _explained(
    question: Question, allocator: Allocator, nodes: Sequence[Node], claims: Sequence[ResourceClaim]
) -> Explanation:
    """Explain the claims within one time limit for all searches."""
    budget = SearchTime(question.seconds)
    return explain(allocator, nodes, claims, limits=lambda: budget.limits, all_nodes=question.all_nodes)


def _passed_over(
    question: Question, objects: Objects, rules: Rules, subject: Subject, nodes: Sequence[Node]
) -> Sequence[NodeReport]:
    """Report on the allocated claims, on the first node where they can be used, as if they were unallocated."""
    if not subject.allocated or not nodes:
        return ()
    keys = [(claim.metadata.namespace, claim.metadata.name) for claim in subject.allocated]
    allocator = Allocator(objects.inventory(without=keys), rules=rules)
    return _explained(question, allocator, nodes[:1], subject.allocated).nodes


def _nodes(question: Question, objects: Objects) -> list[Node]:
    nodes = objects.node_list()
    if not nodes:
        raise NotFound("there are no nodes, and no slice names one: start a node, or add nodes with -f")
    if question.node and not (nodes := [node for node in nodes if node.name == question.node]):
        raise NotFound(f'node "{question.node}" not found')
    return nodes


def _subject(question: Question, objects: Objects) -> Subject:
    key = question.key
    pod = objects.pods.get(key) if question.kind != "claim" else None
    claim = objects.claims.get(key) if question.kind != "pod" else None
    if pod and claim:
        raise InvalidInput(f'both a pod and a claim are named "{key[1]}": use pod/{key[1]} or claim/{key[1]}')
    if pod is not None:
        if not pod.spec.resource_claims:
            raise InvalidInput(f"pod {text_of(key)} uses no resource claims, so it needs no allocation to explain")
        return pod_subject(objects, pod)
    if claim is not None:
        return claim_subject(objects, key)
    what = f'{question.kind} "{key[1]}" not found' if question.kind else f'there is no pod or claim "{key[1]}"'
    raise NotFound(f"{what} in namespace {key[0]}{_elsewhere(question, objects)}")


def _elsewhere(question: Question, objects: Objects) -> str:
    """Name other namespaces with a pod or claim of that name, or suggest looking in them."""
    namespace, name = question.key
    if question.kind and ((namespace, name) in objects.pods or (namespace, name) in objects.claims):
        other = "claim" if question.kind == "pod" else "pod"
        return f", but there is a {other} of that name: use {other}/{name}"
    places = sorted({key[0] for key in (*objects.pods, *objects.claims) if key[1] == name})
    return f", but in {', '.join(places)}: use -n {places[0]}" if places else ": use -n for another namespace"
