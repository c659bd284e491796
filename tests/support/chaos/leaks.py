"""What is left of pods that are over, and pods that are stuck: nothing, after a cluster has settled. Pure.

A pod is over when it has succeeded or failed, or is gone. Whoever is not over may have what it has.
"""

from collections.abc import Iterator

from devlet.objects.documents import Document
from tests.support.chaos.snapshot import OVER, NodeState, Snapshot, consumers, lacks_claims

__all__ = ["leaks"]


def leaks(snapshot: Snapshot) -> list[str]:
    """A text for each thing that ought not to be."""
    live = {_uid(pod): pod for pod in snapshot.pods if pod.get("status", {}).get("phase") not in OVER}
    found = [*_stuck(snapshot)]
    for claim in snapshot.claims:
        found += (f"claim {_name(claim)}: {text}" for text in _claim(claim, live))
    reserved = {_uid(claim) for claim in snapshot.claims if consumers(claim)}
    for state in snapshot.states:
        found += (f"node {state.name}: {text}" for text in _node(state, live, reserved))
    return found


def _stuck(snapshot: Snapshot) -> Iterator[str]:
    """Who was put on a node by hand may wait for devices there."""
    for pod in snapshot.pods:
        phase = pod.get("status", {}).get("phase", "")
        if pod["metadata"].get("deletionTimestamp"):
            yield f"pod {_name(pod)} is being deleted, and stays ({phase}); {_status(pod)}"
        elif pod["spec"].get("nodeName") and phase == "Pending" and not lacks_claims(pod, snapshot.claims):
            yield f"pod {_name(pod)} is bound to {pod['spec']['nodeName']}, and does not start; {_status(pod)}"


def _claim(claim: Document, live: dict[str, Document]) -> Iterator[str]:
    users, status = consumers(claim), claim.get("status") or {}
    for uid, name in users.items():
        if uid not in live:
            yield f"reserved for pod {name} {uid}, which is over"
    if status.get("allocation") and not users:
        yield "allocated, and reserved for nobody"
    if claim["metadata"].get("deletionTimestamp") and not users:
        yield f"is being deleted, and stays: finalizers {claim['metadata'].get('finalizers')}"
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner["kind"] == "Pod" and owner["uid"] not in live:
            yield f"made for pod {owner['name']} {owner['uid']}, which is over"


def _node(state: NodeState, live: dict[str, Document], reserved: set[str]) -> Iterator[str]:
    here = {uid: pod for uid, pod in live.items() if pod["spec"].get("nodeName") == state.name}
    for entry in state.prepared:
        gone = sorted((entry.pods or frozenset()) - here.keys())
        if gone or not entry.pods or entry.uid not in reserved:
            yield f"claim {entry.name} {entry.uid} is in the checkpoint for {gone or 'nobody'}"
    for pod in sorted({entry.pod for entry in state.devices} - here.keys()):
        yield f"pod {pod} has devices in the checkpoint, and is over or not here"
    for pod in sorted(state.holders - here.keys()):
        yield f"pod {pod} has devices in the views, and is over or not here"
    for name in sorted(state.listed - {pod["metadata"]["name"] for pod in here.values()}):
        yield f"pod {name} has devices in PodResources, and is over or not here"
    prepared = {entry.uid for entry in state.prepared}
    for driver, uids in state.drivers.items():
        for uid in sorted(set(uids) - prepared):
            yield f"driver {driver} has claim {uid} prepared, of which the node knows nothing"
    for spec in state.specs:
        if not any(uid in spec for uid in prepared):
            yield f"CDI spec {spec} is of no claim that is prepared"


def _status(pod: Document) -> str:
    status = pod.get("status", {})
    return f"{status.get('reason', '')} {status.get('message', '')} {status.get('containerStatuses', '')}".strip()


def _name(document: Document) -> str:
    return f"{document['metadata']['name']} {_uid(document)}"


def _uid(document: Document) -> str:
    uid: str = document["metadata"]["uid"]
    return uid
