import pytest

from devlet.cli.allocation_input import KINDS, Objects, stored, text_of
from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName

SLICE: Document = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d",
        "nodeName": "n1",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "a", "basic": {}}, {"name": "b", "basic": {"nodeName": "n2"}}],
    },
}
RULE: Document = {
    "apiVersion": "resource.k8s.io/v1alpha3",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "r"},
    "spec": {"deviceSelector": {"device": "b"}, "taint": {"key": "k", "effect": "NoSchedule"}},
}
CLAIM: Document = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "ns"},
    "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "x"}]}},
}
RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "a"}


def objects(*documents: Document) -> Objects:
    made = Objects()
    for document in documents:
        made.add(stored(document, KINDS[document["kind"]]), "file")
    return made


def identity(name: str) -> DeviceIdentity:
    return DeviceIdentity(DriverName("d"), PoolName("p"), DeviceName(name))


def test_an_object_of_an_older_version_is_read_with_its_defaults() -> None:
    claim = objects(CLAIM).claims["ns", "c"]
    (request,) = claim.spec.devices.requests
    assert request.exactly and (request.exactly.allocation_mode, request.exactly.count) == ("ExactCount", 1)


def test_what_an_allocated_claim_has_is_taken_unless_the_claim_is_left_out() -> None:
    allocated = CLAIM | {"status": {"allocation": {"devices": {"results": [RESULT]}}}}
    found = objects(SLICE, allocated)
    assert [holder.claim for holder in found.inventory().holders(identity("a"))] == ["c"]
    assert found.inventory(without=[("ns", "c")]).holders(identity("a")) == ()


def test_a_taint_rule_is_on_the_devices_that_it_selects() -> None:
    inventory = objects(SLICE, RULE).inventory()
    taints = {name: inventory.find(identity(name))[0].device.taints for name in ("a", "b")}
    assert taints["a"] == () and [taint.key for taint in taints["b"]] == ["k"]


def test_nodes_are_invented_only_if_there_are_none() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n9"}}
    assert [each.name for each in objects(SLICE).node_list()] == ["n1", "n2"]
    assert [each.name for each in objects(SLICE, node).node_list()] == ["n9"]


def test_the_same_object_may_come_twice_and_another_of_its_name_not() -> None:
    assert len(objects(SLICE, SLICE).slices) == 1
    with pytest.raises(InvalidInput, match="file: there are two different objects named ResourceSlice s"):
        objects(SLICE, SLICE | {"spec": SLICE["spec"] | {"nodeName": "n3"}})


def test_a_value_of_the_wrong_type_is_an_error_with_the_name_of_the_object() -> None:
    with pytest.raises(InvalidInput, match="file: ResourceSlice s: Expected"):
        objects(SLICE | {"spec": {"devices": 5}})


def test_a_claim_can_be_replaced() -> None:
    found = objects(CLAIM)
    document = found.documents["ns", "c"]
    found.put_claim({**document, "status": {"allocation": {"devices": {"results": [RESULT]}}}})
    assert [result.device for result in found.claims["ns", "c"].results] == ["a"]


def test_the_text_of_a_name_has_its_namespace_if_there_is_one() -> None:
    assert (text_of(("", "n")), text_of(("ns", "n"))) == ("n", "ns/n")


def test_the_ledger_knows_what_claims_hold_and_what_slices_limit() -> None:
    held: Document = {"status": {"allocation": {"devices": {"results": [RESULT]}}}}
    other = {**CLAIM, "metadata": {"name": "other", "namespace": "ns"}}
    assert not objects(SLICE, CLAIM | held, other).ledger().all()
    (overlap,) = objects(SLICE, CLAIM | held, other | held).ledger().all()
    assert overlap.claims == (("ns", "c"), ("ns", "other"))
