from typing import Any

from devlet.cluster.informer import Changed
from devlet.control.scheduler import relevance
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

ALLOCATED: Document = {"allocation": {"devices": {"results": []}}}


def pod(spec: Document | None = None, **status: Any) -> Pod:
    return view(Pod, {"metadata": {"name": "p", "generation": 1}, "spec": spec or {}, "status": status})


def claim(uid: str = "u", status: Document | None = None, **metadata: Any) -> ResourceClaim:
    return view(ResourceClaim, {"metadata": {"name": "c", "uid": uid, **metadata}, "status": status or {}})


def change(old: ResourceClaim | None, new: ResourceClaim | None) -> Changed[ResourceClaim]:
    return Changed(("default", "c"), old, new)


def test_spec_and_claim_names_of_a_pod_are_relevant_and_conditions_are_not() -> None:
    assert relevance.is_relevant(pod(), pod({"schedulingGates": [{"name": "a.b/c"}]}))
    assert relevance.is_relevant(pod(), pod(resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "c"}]))
    assert not relevance.is_relevant(pod(), pod(conditions=[{"type": "PodScheduled", "status": "False"}]))


def test_devices_and_owner_of_a_claim_are_relevant_and_labels_are_not() -> None:
    assert relevance.may_help_pods(change(None, claim()))
    assert relevance.may_help_pods(change(claim(), None))
    assert relevance.may_help_pods(change(claim(), claim("other")))
    assert relevance.may_help_pods(change(claim(), claim(status=ALLOCATED)))
    assert relevance.may_help_pods(change(claim(), claim(deletionTimestamp="2026-01-01T00:00:00Z")))
    assert relevance.may_help_pods(change(claim(), claim(ownerReferences=[{"kind": "Pod", "name": "p", "uid": "v"}])))
    assert not relevance.may_help_pods(change(claim(), claim(labels={"a": "b"})))


def test_a_claim_was_deallocated_if_it_had_devices_and_has_none() -> None:
    assert relevance.was_deallocated(change(claim(status=ALLOCATED), claim()))
    assert relevance.was_deallocated(change(claim(status=ALLOCATED), None))
    assert not relevance.was_deallocated(change(claim(), claim()))
    assert not relevance.was_deallocated(change(None, claim(status=ALLOCATED)))
