from typing import Any

from devlet.cluster.informer import Changed
from devlet.control.scheduler import news
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


def test_the_spec_of_a_pod_and_the_names_of_its_claims_concern_it_and_its_conditions_do_not() -> None:
    assert news.concerns(pod(), pod({"schedulingGates": [{"name": "a.b/c"}]}))
    assert news.concerns(pod(), pod(resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "c"}]))
    assert not news.concerns(pod(), pod(conditions=[{"type": "PodScheduled", "status": "False"}]))


def test_what_a_claim_has_and_whose_it_is_matters_and_its_labels_do_not() -> None:
    assert news.matters(change(None, claim()))
    assert news.matters(change(claim(), None))
    assert news.matters(change(claim(), claim("other")))
    assert news.matters(change(claim(), claim(status=ALLOCATED)))
    assert news.matters(change(claim(), claim(deletionTimestamp="2026-01-01T00:00:00Z")))
    assert news.matters(change(claim(), claim(ownerReferences=[{"kind": "Pod", "name": "p", "uid": "v"}])))
    assert not news.matters(change(claim(), claim(labels={"a": "b"})))


def test_a_claim_has_lost_its_devices_if_it_had_some_and_has_none() -> None:
    assert news.lost_devices(change(claim(status=ALLOCATED), claim()))
    assert news.lost_devices(change(claim(status=ALLOCATED), None))
    assert not news.lost_devices(change(claim(), claim()))
    assert not news.lost_devices(change(None, claim(status=ALLOCATED)))
