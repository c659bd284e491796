"""A pending pod with everything that decides where it can run."""

from typing import Any

import pytest

from devlet.control.scheduler import fit
from devlet.control.scheduler.subject import Subject, read_subject
from devlet.errors import InvalidInput
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import DeviceClassName, ResourceName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from tests.support.workloads import DRIVER, claim, node, pod
from tests.unit.control.conftest import allocation_on
from tests.unit.control.scheduler.test_placing import with_gpus

GPU = ResourceName("example.com/gpu")
CLASSES = {GPU: DeviceClassName(DRIVER)}


def a_pod(document: Document, uid: str = "u1") -> Pod:
    document["metadata"]["uid"] = uid
    return view(Pod, document)


def a_claim(status: Document) -> ResourceClaim:
    return view(ResourceClaim, {**claim("c"), "status": status})


def subject(status: Document, **spec: Any) -> Subject:
    found = read_subject(a_pod(pod("train", claim="c", **spec)), lambda _, __: a_claim(status), {})
    assert isinstance(found, Subject)
    return found


def reserved(uid: str) -> Document:
    return {
        "allocation": allocation_on("n1"),
        "reservedFor": [{"resource": "pods", "name": "train", "uid": uid}],
    }


def test_claims_are_classified_by_allocation_and_reservation() -> None:
    waiting, unreserved, mine = subject({}), subject(reserved("u2")), subject(reserved("u1"))
    assert [len(each.waiting) for each in (waiting, unreserved, mine)] == [1, 0, 0]
    assert [len(each.unreserved) for each in (waiting, unreserved, mine)] == [0, 1, 0]
    assert [len(each.reserved) for each in (waiting, unreserved, mine)] == [0, 0, 1]


@pytest.mark.spec("DA-5.2c")
def test_a_pod_whose_claims_are_not_ready_has_a_reason() -> None:
    found = read_subject(a_pod(pod("train", claim="c")), lambda _, __: None, {})
    assert found == 'could not find ResourceClaim "default/c"'


def test_an_unreadable_field_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="cpu"):
        read_subject(a_pod(pod("train", requests={"cpu": "much"})), lambda _, __: None, {})


def test_dra_provides_what_the_node_does_not_offer() -> None:
    found = read_subject(a_pod(pod("train", requests={GPU: "2"})), lambda _, __: None, CLASSES)
    assert isinstance(found, Subject) and found.extended == {GPU}
    bare, has = (fit.node_view(view(Node, each)) for each in (node("n1"), with_gpus("n2")))
    assert found.provided_on(bare) == {GPU} and found.provided_on(has) == frozenset()
    made = found.extended_claim(found.provided_on(bare))
    assert made is not None and made.claim.spec.devices.requests[0].exactly is not None
    assert found.extended_claim(frozenset()) is None


@pytest.mark.spec("DA-11.16a")
def test_a_placed_pod_gets_no_claim_for_extended_resources() -> None:
    found = read_subject(a_pod(pod("train", requests={GPU: "2"}, nodeName="n1")), lambda _, __: None, CLASSES)
    assert isinstance(found, Subject) and not found.extended and found.node == "n1"


def test_equal_pods_with_equal_claims_are_of_one_kind() -> None:
    assert subject({}).kind == subject({}).kind != subject(reserved("u1")).kind
    assert subject({}).kind != subject({}, nodeName="n1").kind
    hash(subject({}).kind)
    other = a_claim(reserved("u1"))
    assert subject({}).with_claims((other,)).kind == subject(reserved("u1")).kind
