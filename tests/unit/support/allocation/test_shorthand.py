from typing import Any

import pytest

from devlet.objects.documents import Document
from tests.support.allocation.shorthand import problem


def device(text: str) -> Document:
    found: Document = problem({"case": "t", "slices": [{"pool": "p1", "devices": [text]}]})["slices"][0]["spec"][
        "devices"
    ][0]
    return found


def requests(*entries: Any) -> list[Document]:
    found: list[Document] = problem({"case": "t", "claims": [list(entries)]})["claims"][0]["spec"]["devices"][
        "requests"
    ]
    return found


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("x=1", "attributes", {"x": {"int": 1}}),
        ("x='1'", "attributes", {"x": {"string": "1"}}),
        ("x=v1.2.3", "attributes", {"x": {"version": "1.2.3"}}),
        ("x=[a,b]", "attributes", {"x": {"strings": ["a", "b"]}}),
        ("x=[true]", "attributes", {"x": {"bools": [True]}}),
        ("x=", "attributes", {"x": {}}),
        ("m:4Gi", "capacity", {"m": {"value": "4Gi"}}),
        (
            "m:4(default=1,values=1|2)",
            "capacity",
            {"m": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}}},
        ),
        (
            "m:4(min=1,step=1)",
            "capacity",
            {"m": {"value": "4", "requestPolicy": {"validRange": {"min": "1", "step": "1"}}}},
        ),
        ("s.n-=2", "consumesCounters", [{"counterSet": "s", "counters": {"n": {"value": "2"}}}]),
        ("shared", "allowMultipleAllocations", True),
        ("bindsToNode", "bindsToNode", True),
        ("!k=v:NoExecute", "taints", [{"key": "k", "value": "v", "effect": "NoExecute"}]),
        ("?Ready", "bindingConditions", ["Ready"]),
        ("?!Broken", "bindingFailureConditions", ["Broken"]),
        ("@node-2", "nodeName", "node-2"),
        ("@all", "allNodes", True),
    ],
)
def test_a_word_is_a_part_of_a_device(word: str, key: str, value: object) -> None:
    assert device(f"d1 {word}") == {"name": "d1", key: value}


def test_a_request_says_how_many_of_which_class() -> None:
    one, two, every = requests("r0 a", "r1 2 b", "r2 all a")
    assert one == {"name": "r0", "exactly": {"deviceClassName": "a", "allocationMode": "ExactCount", "count": 1}}
    assert two["exactly"]["count"] == 2
    assert every["exactly"] == {"deviceClassName": "a", "allocationMode": "All"}


def test_a_request_with_alternatives_has_a_list_of_them() -> None:
    ((request),) = requests({"r0": ["s0 b", "s1 a"]})
    assert [each["name"] for each in request["firstAvailable"]] == ["s0", "s1"]


def test_words_of_a_request_are_selectors_capacity_and_tolerations() -> None:
    (request,) = requests("r0 a admin kind=gpu memory>=4Gi lanes:2 ~k:NoExecute if 1 < 2")
    exactly = request["exactly"]
    assert [selector["cel"]["expression"] for selector in exactly["selectors"]] == [
        'device.attributes["a.example.com"].kind == "gpu"',
        'device.capacity["a.example.com"]["memory"].compareTo(quantity("4Gi")) >= 0',
        "1 < 2",
    ]
    assert exactly["capacity"] == {"requests": {"lanes": "2"}}
    assert exactly["tolerations"] == [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]
    assert exactly["adminAccess"] is True


def test_pools_are_complete_unless_said_otherwise() -> None:
    slices = [{"pool": "p1"}, {"pool": "p1"}, {"pool": "b/p1"}, {"pool": "p2", "of": 5}]
    found = problem({"case": "t", "slices": slices})["slices"]
    assert [slice_["spec"]["pool"]["resourceSliceCount"] for slice_ in found] == [2, 2, 1, 5]
    assert found[2]["spec"]["driver"] == "b.example.com"


def test_a_node_selector_has_terms_and_requirements() -> None:
    (slice_,) = problem({"case": "t", "slices": [{"pool": "p1", "at": "z=1,2&metadata.name=n|z=3"}]})["slices"]
    assert slice_["spec"]["nodeSelector"]["nodeSelectorTerms"] == [
        {
            "matchExpressions": [{"key": "z", "operator": "In", "values": ["1", "2"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
        },
        {"matchExpressions": [{"key": "z", "operator": "In", "values": ["3"]}]},
    ]


def test_what_is_held_is_an_allocated_claim() -> None:
    held, share = problem({"case": "t", "allocated": ["p1/d1", "b/p1/d2 shared m:1"]})["allocated"]
    (result,) = held["status"]["allocation"]["devices"]["results"]
    assert result == {"request": "r", "driver": "a.example.com", "pool": "p1", "device": "d1"}
    (result,) = share["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["consumedCapacity"]) == ("b.example.com", {"m": "1"})
    assert result["shareID"]


def test_features_are_turned_off() -> None:
    assert problem({"case": "t", "without": ["DeviceTaints"]})["features"] == {"DeviceTaints": False}
    assert "features" not in problem({"case": "t"})


def test_something_else_is_no_request() -> None:
    with pytest.raises(AssertionError, match="'r0' is no request"):
        requests("r0")
