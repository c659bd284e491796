from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from devlet.alloc import Features, Fit, Rules, allocation_documents, held_devices
from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from tests.support.allocation.desk import Desk


def fit(desk: Desk) -> Fit:
    outcome = desk.outcome()
    assert isinstance(outcome, Fit)
    return outcome


def allocations(rules: Rules = Rules(), **short: Any) -> list[Document]:
    desk = Desk(rules=rules, **short)
    ids: Iterator[int] = count()
    return allocation_documents(fit(desk), desk.allocator.features, rules, lambda: f"id-{next(ids)}")


ONE = [{"pool": "p1", "devices": ["d1", "d2"]}]


@pytest.mark.spec("DA-3.10a")
def test_a_result_names_request_and_device_and_nothing_that_is_not_set() -> None:
    (found,) = allocations(slices=ONE, claims=[["r0 a"]])
    assert found["devices"] == {"results": [{"request": "r0", "driver": "a.example.com", "pool": "p1", "device": "d1"}]}


@pytest.mark.spec("DA-3.10b")
def test_a_result_carries_what_the_request_and_the_device_say() -> None:
    slices = [{"pool": "p1", "devices": ["d1 !NoExecute ?Ready ?!Broken"]}]
    (found,) = allocations(slices=slices, claims=[["r0 a admin ~NoExecute"]])
    (result,) = found["devices"]["results"]
    assert result["adminAccess"] is True
    assert result["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]
    assert (result["bindingConditions"], result["bindingFailureConditions"]) == (["Ready"], ["Broken"])


def test_absent_conditions_are_not_written() -> None:
    slices = [{"pool": "p1", "devices": ["d1 ?Ready"]}]
    (found,) = allocations(slices=slices, claims=[["r0 a"]])
    assert "bindingFailureConditions" not in found["devices"]["results"][0]


def test_a_share_has_an_id_of_its_own_and_what_it_consumes() -> None:
    slices = [{"pool": "p1", "devices": ["d1 lanes:4 ports:1(default=0) shared"]}]
    found = allocations(slices=slices, claims=[["r0 a lanes:1", "r1 a lanes:2"]])
    shares = [(each["shareID"], each["consumedCapacity"]) for each in found[0]["devices"]["results"]]
    assert shares == [("id-0", {"lanes": "1", "ports": "0"}), ("id-1", {"lanes": "2", "ports": "0"})]


def test_a_share_of_a_device_without_capacity_consumes_nothing() -> None:
    (found,) = allocations(slices=[{"pool": "p1", "devices": ["d1 shared"]}], claims=[["r0 a"]])
    (result,) = found["devices"]["results"]
    assert result["shareID"] == "id-0"
    assert "consumedCapacity" not in result


CLASSES = [{"a": {"config": ["k=class", "l=class"]}}, {"b": {"config": ["b/k=class"]}}]
BOTH = [{"pool": "p1", "devices": 3}, {"pool": "b/p1", "devices": 1}]


def config(found: Document) -> list[tuple[str, list[str], Document]]:
    return [
        (each["source"], each.get("requests", []), each["opaque"]["parameters"]) for each in found["devices"]["config"]
    ]


@pytest.mark.spec("DA-3.10c")
def test_configuration_of_a_class_is_listed_once_with_all_its_requests() -> None:
    requests = ["r0 a", "r1 b", {"r2": ["s0 9 a", "s1 a"]}]
    (found,) = allocations(slices=BOTH, classes=CLASSES, claims=[requests])
    assert config(found) == [
        ("FromClass", ["r0", "r2/s1"], {"k": "class"}),
        ("FromClass", ["r0", "r2/s1"], {"l": "class"}),
        ("FromClass", ["r1"], {"k": "class"}),
    ]


@pytest.mark.spec("DA-3.10d")
def test_configuration_of_a_claim_is_for_all_or_for_those_it_names() -> None:
    claim = {
        "requests": ["r0 a", {"r2": ["s0 9 a", "s1 a"]}],
        "config": ["k=all", "k=one for r0", "k=other for r2/s0", "k=chosen for r2/s1", "k=list for r2"],
    }
    (found,) = allocations(slices=BOTH, claims=[claim])
    assert config(found) == [
        ("FromClaim", [], {"k": "all"}),
        ("FromClaim", ["r0"], {"k": "one"}),
        ("FromClaim", ["r2/s1"], {"k": "chosen"}),
        ("FromClaim", ["r2"], {"k": "list"}),
    ]


@pytest.mark.spec("DA-11.13")
def test_configuration_for_several_requests_is_listed_once() -> None:
    claim = {"requests": ["r0 a", "r1 a", "r2 a"], "config": ["k=v for r0,r1,r2"]}
    (found,) = allocations(slices=BOTH, claims=[claim])
    assert len(config(found)) == 1
    (found,) = allocations(Rules.reference(), slices=BOTH, claims=[claim])
    assert config(found) == [("FromClaim", ["r0", "r1", "r2"], {"k": "v"})] * 3


def node_selector(*slices: Document, claims: Any = (("r0 2 a",),)) -> Document | None:
    (found,) = allocations(slices=list(slices), claims=[list(claim) for claim in claims])
    return found.get("nodeSelector")


HERE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}


def labels(*requirements: tuple[str, str]) -> Document:
    expressions = [{"key": key, "operator": "In", "values": values.split(",")} for key, values in requirements]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


@pytest.mark.spec("DA-3.10e")
def test_a_device_of_the_node_pins_the_claim_to_it() -> None:
    there = {"pool": "p1", "at": "all", "devices": ["d1"]}
    assert node_selector(there, {"pool": "p2", "devices": ["d2"]}) == HERE
    assert node_selector(there, {"pool": "p2", "at": "all", "devices": ["d2 bindsToNode"]}) == HERE
    assert node_selector(there, {"pool": "p2", "at": "devices", "devices": ["d2 @node-1"]}) == HERE
    assert node_selector(there, {"pool": "p2", "at": "all", "devices": ["d2"]}) is None


@pytest.mark.spec("DA-3.10f")
def test_selectors_of_devices_are_merged_and_repeated_ones_left_out() -> None:
    first = {"pool": "p1", "at": "region=region-1,region-2", "devices": ["d1"]}
    same = {"pool": "p2", "at": "region=region-2,region-1", "devices": ["d2"]}
    other = {"pool": "p2", "at": "planet=earth", "devices": ["d2"]}
    assert node_selector(first, same) == labels(("region", "region-1,region-2"))
    assert node_selector(first, other) == labels(("region", "region-1,region-2"), ("planet", "earth"))


@pytest.mark.spec("DA-3.10g")
def test_a_selector_with_several_terms_cannot_be_merged() -> None:
    slices = [{"pool": "p1", "at": "devices", "devices": ["d1 @planet=earth|planet=mars"]}]
    text = "create NodeSelector for claim claim-0: unsupported ResourceSlice.NodeSelector with 2 terms: .*p1/d1"
    with pytest.raises(InvalidInput, match=text):
        allocations(slices=slices, claims=[["r0 a"]])


def test_held_devices_are_the_allocated_ones() -> None:
    slices = [{"pool": "p1", "devices": ["d1 lanes:4 shared", "d2"]}]
    desk = Desk(slices=slices, claims=[["r0 a lanes:1", "r1 a", "r2 a admin"]])
    found = held_devices(fit(desk).chosen[0], lambda: "id")
    assert [(each.request, each.device, each.share_id, each.admin_access) for each in found] == [
        ("r0", "d1", "id", None),
        ("r1", "d2", None, None),
        ("r2", "d1", "id", True),
    ]
    desk.inventory.hold_devices("default", "claim-0", found)
    assert (desk.entry("p1/d2").is_taken, desk.entry("p1/d1").consumed) == (True, {"lanes": 10**9})


def test_documents_and_features_agree_on_conditions() -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": ["d1 ?Ready"]}], claims=[["r0 a"]])
    (found,) = allocation_documents(fit(desk), Features(device_binding_and_status=False), Rules(), lambda: "")
    assert "bindingConditions" not in found["devices"]["results"][0]
