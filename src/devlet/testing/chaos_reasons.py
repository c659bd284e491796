"""Does each pod that waits have to wait, and does it say the true reason? Asked of a new allocator, which knows only
what is in the snapshot. Pure.

Whether it fits is found out without the scheduler, by trying every node. The text then comes from the same words that
the scheduler uses, over that snapshot: what differs is told with both texts.
"""

from collections.abc import Iterator

from devlet.alloc import Allocator, Fit, Inventory
from devlet.control.scheduler import claim_checks, extended_resources, fit, reasons
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.node_use import NodeUse
from devlet.control.scheduler.nodes import NodeTable
from devlet.control.scheduler.subject import Subject, read_subject
from devlet.objects.claim import ResourceClaim
from devlet.objects.device_class import DeviceClass
from devlet.objects.documents import view
from devlet.objects.identifiers import NodeName
from devlet.objects.node import Node
from devlet.objects.pod import Pod
from devlet.objects.slice import ResourceSlice
from devlet.testing.chaos_snapshot import Snapshot

__all__ = ["pending", "unexplained"]

SECONDS = 10.0  # for finding a reason


def pending(snapshot: Snapshot) -> list[Pod]:
    """Pods that have no node."""
    pods = [view(Pod, each) for each in snapshot.pods]
    return [pod for pod in pods if not (pod.spec.node_name or pod.metadata.is_deleting or pod.is_finished)]


def unexplained(snapshot: Snapshot) -> list[str]:
    """A text for each pod that waits without need, or that says something else than the truth."""
    judge = _Judge(snapshot)
    return [f"pod {pod.name} {pod.uid} {text}" for pod in pending(snapshot) for text in judge.complaints(pod)]


class _Judge:
    def __init__(self, snapshot: Snapshot) -> None:
        self._pods = [view(Pod, each) for each in snapshot.pods]
        self._claims = {_key(each): each for each in (view(ResourceClaim, one) for one in snapshot.claims)}
        self._nodes = [view(Node, each) for each in snapshot.nodes]
        self._slices = [view(ResourceSlice, each) for each in snapshot.slices]
        self._classes = {each.name: each for each in (view(DeviceClass, one) for one in snapshot.classes)}
        self._by_resource = extended_resources.classes_by_resource(list(self._classes.values()))

    def complaints(self, pod: Pod) -> Iterator[str]:
        said, wanted = _said(pod), self._truth(pod)
        if not wanted:
            yield f"fits, and waits all the same; it says: {said!r}"
        elif said != wanted:
            yield f"says: {said!r}; but: {wanted!r}"

    def _truth(self, pod: Pod) -> str:
        """Empty if it fits."""
        subject = read_subject(pod, lambda namespace, name: self._claims.get((namespace, name)), self._by_resource)
        if isinstance(subject, str):
            return subject
        for claim in subject.waiting:
            if text := claim_checks.missing_class(claim, self._classes.__contains__):
                return text
        if any(self._fits(subject, node) for node in self._nodes):
            return ""
        return self._reason(subject) or "the scheduler would say that it fits, and it does not"

    def _fits(self, subject: Subject, node: Node) -> bool:
        """On the node, with an allocator that was never asked before."""
        seen, use = fit.node_view(node), NodeUse()
        for pod in self._pods:
            if pod.spec.node_name == node.name and not pod.is_finished:
                use.add(pod.uid, fit.needs_of(pod).amounts)
        if fit.mismatch(subject.needs, seen) or fit.lacking(subject.needs, seen, use):
            return False
        labels = node.metadata.labels
        if not all(claim_checks.is_usable_on(claim, node.name, labels) for claim in subject.allocated):
            return False
        inventory = Inventory(self._slices, self._classes.values())
        for claim in self._claims.values():
            inventory.hold(claim)
        return not subject.waiting or isinstance(Allocator(inventory).allocate(node, subject.waiting), Fit)

    def _reason(self, subject: Subject) -> str:
        devices = Devices()
        table = NodeTable(devices.allocator)
        for one in self._classes.values():
            devices.see_class(None, one)
        for slice in self._slices:
            devices.see_slice(None, slice)
        for key, claim in self._claims.items():
            devices.hold(key, claim.results)
        for node in self._nodes:
            table.put(node)
        for pod in self._pods:
            if pod.spec.node_name and not pod.is_finished:
                table.occupy(pod.uid, NodeName(pod.spec.node_name), fit.needs_of(pod))
        return reasons.reason(subject, table, devices, SECONDS)


def _said(pod: Pod) -> str:
    conditions = [each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False"]
    return conditions[0].message if conditions else ""


def _key(claim: ResourceClaim) -> tuple[str, str]:
    return claim.metadata.namespace, claim.metadata.name
