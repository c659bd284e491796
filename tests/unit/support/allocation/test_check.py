"""An answer that is right passes; each way to spoil it is noticed."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from devlet.errors import InvalidSelector
from devlet.objects.documents import Document
from tests.support.allocation.check import IMPROVED, REFERENCE, Rules, check
from tests.support.allocation.shorthand import problem

LOCAL = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}
SHARE = "11111111-2222-4333-8444-{:012}"


def matches(expression: str, device: Document, driver: str) -> bool:
    """Enough CEL for these tests: a driver's class, and one attribute."""
    if expression.startswith("device.driver"):
        return expression.endswith(f'"{driver}"')
    name, value = expression.removeprefix(f'device.attributes["{driver}"].').split(" == ")
    attributes = device.get("attributes") or {}
    if name not in attributes:
        raise InvalidSelector(f"no such key: {name}")
    return bool(attributes[name]["string"] == value.strip('"'))


def short(**parts: Any) -> Document:
    return problem({"case": "test", **parts})


def given(*results: Document, selector: Document | None = LOCAL, config: list[Document] | None = None) -> Document:
    devices: Document = {"results": list(results)} | ({"config": config} if config else {})
    return {"devices": devices} | ({"nodeSelector": selector} if selector else {})


def one(request: str, place: str, **more: Any) -> Document:
    pool, device = place.split("/")
    return {"request": request, "driver": "a.example.com", "pool": pool, "device": device, **more}


def wrong(question: Document, *results: Document, rules: Rules = IMPROVED) -> str:
    return "; ".join(check(question, "node-1", results, matches, rules))


RICH = short(
    classes=[{"a": {"config": ["mode=fast"]}}],
    slices=[
        {
            "pool": "p1",
            "devices": ["d1 kind=x rack=r1 set1.n-=2 ?Ready", "d2 kind=x rack=r1 set1.n-=2 !hot=1:NoExecute"],
        },
        {"pool": "p1", "counters": {"set1": {"n": 4}}},
        {"pool": "p2", "devices": ["s1 lanes:4 shared", "s2 kind=y"]},
        {"pool": "p3", "of": 2, "devices": ["half"]},
        {"pool": "p4", "at": "node-2", "devices": ["far"]},
    ],
    allocated=["p2/s1 shared lanes:1"],
    claims=[
        {
            "requests": [
                "r0 2 a kind=x ~hot:NoExecute",
                "r1 a lanes:2",
                {"r2": ["s0 2 a kind=y", "s1 a kind=y admin"]},
            ],
            "constraints": ["match rack of r0"],
            "config": ["size=big for r0,r2/s1", "size=small for r2/s0"],
        }
    ],
)
TOLERATION = [{"key": "hot", "operator": "Exists", "effect": "NoExecute"}]
FAST = {"opaque": {"driver": "a.example.com", "parameters": {"mode": "fast"}}}
BIG = {"opaque": {"driver": "a.example.com", "parameters": {"size": "big"}}}
RIGHT = given(
    one("r0", "p1/d1", tolerations=TOLERATION, bindingConditions=["Ready"]),
    one("r0", "p1/d2", tolerations=TOLERATION),
    one("r1", "p2/s1", shareID=SHARE.format(1), consumedCapacity={"lanes": "2"}),
    one("r2/s1", "p2/s2", adminAccess=True),
    config=[
        {"source": "FromClass", "requests": ["r0", "r1", "r2/s1"], **FAST},
        {"source": "FromClaim", "requests": ["r0", "r2/s1"], **BIG},
    ],
)

Spoil = Callable[[list[Document], Document], object]
SPOILED: dict[str, tuple[Spoil, str]] = {
    "a device is missing": (lambda r, _: r.pop(0), "1 devices, expected 2"),
    "a device of another node": (lambda r, _: r[0].update(pool="p4", device="far"), "no device of a usable pool"),
    "a device of an incomplete pool": (
        lambda r, _: r[0].update(pool="p3", device="half"),
        "no device of a usable pool",
    ),
    "a device that nobody publishes": (lambda r, _: r[0].update(device="ghost"), "no device of a usable pool"),
    "a device that is not selected": (lambda r, _: r[0].update(pool="p2", device="s2"), "not selected"),
    "a device twice": (lambda r, _: r[0].update(device="d2"), "a device is there twice"),
    "an unknown request": (lambda r, _: r[0].update(request="r9"), "no request r9"),
    "two alternatives": (lambda r, _: r.append({**r[-1], "request": "r2/s0"}), "2 alternatives are used"),
    "no alternative": (lambda r, _: r.pop(), "0 alternatives are used"),
    "another order": (lambda r, _: r.reverse(), "not in the order of the requests"),
    "no toleration": (lambda r, _: r[1].pop("tolerations"), "tolerations is None"),
    "no binding conditions": (lambda r, _: r[0].pop("bindingConditions"), "bindingConditions is None"),
    "no admin access": (lambda r, _: r[3].pop("adminAccess"), "adminAccess is None"),
    "no share ID": (lambda r, _: r[2].pop("shareID"), "share ID None is missing"),
    "a malformed share ID": (lambda r, _: r[2].update(shareID="1"), "share ID 1 is missing or malformed"),
    "a share of a plain device": (lambda r, _: r[3].update(shareID=SHARE.format(2)), "not shared"),
    "another amount": (lambda r, _: r[2].update(consumedCapacity={"lanes": "1"}), "consumed capacity"),
    "no node selector": (lambda _, d: d.pop("nodeSelector"), "node selector None"),
    "a configuration twice": (lambda _, d: d["devices"]["config"].append(d["devices"]["config"][1]), "config"),
    "no configuration": (lambda _, d: d["devices"].pop("config"), "config []"),
}


def test_what_is_right_passes() -> None:
    assert wrong(RICH, RIGHT) == ""


@pytest.mark.parametrize("name", SPOILED)
def test_what_is_spoiled_is_noticed(name: str) -> None:
    spoil, text = SPOILED[name]
    document = copy.deepcopy(RIGHT)
    spoil(document["devices"]["results"], document)
    assert text in wrong(RICH, document)


def test_every_claim_must_have_a_result() -> None:
    assert wrong(RICH) == "0 results for 1 claims"


def test_more_than_32_results_are_too_many() -> None:
    question = short(slices=[{"pool": "p1", "devices": 33}], claims=[["r0 33 a"]])
    assert wrong(question, given(*(one("r0", f"p1/d{i}") for i in range(33)))) == "claim 0: 33 results, 32 are allowed"


def test_a_device_that_is_allocated_is_not_given_again() -> None:
    question = short(slices=[{"pool": "p1", "devices": ["d1"]}], allocated=["p1/d1"], claims=[["r0 a"]])
    assert "allocated already" in wrong(question, given(one("r0", "p1/d1")))


def test_two_claims_do_not_get_the_same_device() -> None:
    question = short(slices=[{"pool": "p1", "devices": ["d1"]}], claims=[["r0 a"], ["r0 a"]])
    assert "is given 2 times" in wrong(question, given(one("r0", "p1/d1")), given(one("r0", "p1/d1")))


@pytest.mark.parametrize(("rules", "noticed"), [(REFERENCE, True), (IMPROVED, False)])
def test_admin_access_before_a_normal_request_is_an_improvement(rules: Rules, noticed: bool) -> None:
    question = short(slices=[{"pool": "p1", "devices": ["d1"]}], claims=[["r0 a admin"], ["r0 a"]])
    results = given(one("r0", "p1/d1", adminAccess=True)), given(one("r0", "p1/d1"))
    assert ("once more" in wrong(question, *results, rules=rules)) is noticed


def test_a_claim_does_not_get_the_same_device_twice() -> None:
    question = short(slices=[{"pool": "p1", "devices": ["d1"]}], claims=[["r0 a", "r1 a admin"]])
    result = given(one("r0", "p1/d1"), one("r1", "p1/d1", adminAccess=True))
    assert "given twice to one claim" in wrong(question, result)


def test_taints_must_be_tolerated() -> None:
    question = short(slices=[{"pool": "p1", "devices": ["d1 !hot=1:NoSchedule"]}], claims=[["r0 a admin"]])
    assert "taint hot:NoSchedule" in wrong(question, given(one("r0", "p1/d1", adminAccess=True)))


def test_counters_are_counted_over_nodes_and_claims() -> None:
    question = short(
        slices=[
            {"pool": "p1", "devices": ["d1 set1.n-=2"]},
            {"pool": "p1", "at": "node-2", "devices": ["d2 set1.n-=3"]},
            {"pool": "p1", "counters": {"set1": {"n": 4}}},
        ],
        allocated=["p1/d2"],
        claims=[["r0 a"]],
    )
    assert "5 of set1/n are used, there are 4" in wrong(question, given(one("r0", "p1/d1")))


@pytest.mark.parametrize(("rules", "noticed"), [(REFERENCE, True), (IMPROVED, False)])
def test_a_set_that_is_over_consumed_concerns_its_own_devices(rules: Rules, noticed: bool) -> None:
    question = short(
        slices=[
            {"pool": "p1", "devices": ["d1 set1.n-=5", "d2 set2.n-=1"]},
            {"pool": "p1", "counters": {"set1": {"n": 4}, "set2": {"n": 4}}},
        ],
        allocated=["p1/d1"],
        claims=[["r0 a"]],
    )
    assert bool(wrong(question, given(one("r0", "p1/d2")), rules=rules)) is noticed


def test_shares_together_do_not_exceed_the_capacity() -> None:
    question = short(
        slices=[{"pool": "p1", "devices": ["d1 lanes:4 shared"]}], claims=[["r0 a lanes:2", "r1 a lanes:3"]]
    )
    shares = [
        one(f"r{i}", "p1/d1", shareID=SHARE.format(i), consumedCapacity={"lanes": amount})
        for i, amount in enumerate("23")
    ]
    assert "5 of lanes are consumed, there are 4" in wrong(question, given(*shares))


def test_share_ids_are_unique_unless_they_were_recorded() -> None:
    question = short(slices=[{"pool": "p1", "devices": ["d1 shared"]}], claims=[["r0 a", "r1 a"]])
    result = given(*(one(request, "p1/d1", shareID=SHARE.format(1)) for request in ("r0", "r1")))
    assert "is there twice" in wrong(question, result)
    assert wrong(question, result, rules=replace(IMPROVED, unique_shares=False)) == ""


def test_all_means_all_that_can_be_had() -> None:
    question = short(slices=[{"pool": "p1", "devices": ["d1", "d2"]}], claims=[["r0 all a"]])
    assert "not all devices" in wrong(question, given(one("r0", "p1/d1")))
    assert wrong(question, given(one("r0", "p1/d1"), one("r0", "p1/d2"))) == ""


@pytest.mark.parametrize(("rules", "noticed"), [(REFERENCE, True), (IMPROVED, False)])
def test_all_does_not_depend_on_other_drivers_pools(rules: Rules, noticed: bool) -> None:
    slices = [{"pool": "p1", "devices": ["d1"]}, {"pool": "b/p1", "of": 2, "devices": ["d1"]}]
    question = short(slices=slices, claims=[["r0 all a"]])
    assert ("asks for all devices" in wrong(question, given(one("r0", "p1/d1")), rules=rules)) is noticed


@pytest.mark.parametrize(
    ("devices", "constraint", "text"),
    [
        (["d1 x=1", "d2 x=2"], "match x", "nothing in common"),
        (["d1 x=[1,2]", "d2 x=[2,3]", "d3 x=[3,1]"], "match x", "nothing in common"),
        (["d1 x=1", "d2"], "match x", "no attribute"),
        (["d1 x=1", "d2 x=1"], "distinct x", "not distinct"),
        (["d1 x=[1,2]", "d2 x=[3]", "d3 x=2"], "distinct x", "not distinct"),
        (["d1 x=1", "d2 x='1'"], "distinct x", ""),
        (["d1 x=[1,2]", "d2 a.example.com/x=2"], "match x", ""),
    ],
)
def test_constraints_are_about_all_pairs(devices: list[str], constraint: str, text: str) -> None:
    count = len(devices)
    claim = {"requests": [f"r0 {count} a"], "constraints": [constraint]}
    question = short(slices=[{"pool": "p1", "devices": devices}], claims=[claim])
    found = wrong(question, given(*(one("r0", f"p1/d{i + 1}") for i in range(count))))
    assert text in found if text else found == ""


def test_node_selectors_of_all_devices_are_merged() -> None:
    slices = [
        {"pool": "p1", "at": "region=region-1,x", "devices": ["d1"]},
        {"pool": "p2", "at": "region=x,region-1", "devices": ["d1"]},
        {"pool": "p3", "at": "planet=earth", "devices": ["d1"]},
    ]
    question = short(slices=slices, claims=[["r0 3 a"]])
    merged = {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "region", "operator": "In", "values": ["region-1", "x"]},
                    {"key": "planet", "operator": "In", "values": ["earth"]},
                ]
            }
        ]
    }
    results = [one("r0", f"p{i}/d1") for i in (1, 2, 3)]
    assert wrong(question, given(*results, selector=merged)) == ""
    assert "node selector" in wrong(question, given(*results, selector=None))


def test_features_that_are_off_are_not_used() -> None:
    slices = [{"pool": "p1", "devices": ["d1 ?Ready"]}, {"pool": "p2", "devices": ["d2 set1.n-=1"]}]
    off = ["DeviceBindingAndStatus", "PartitionableDevices"]
    question = short(without=off, slices=slices, claims=[["r0 a"]])
    assert "not selected" in wrong(question, given(one("r0", "p1/d1")))
    assert "uses counters while the feature is off" in wrong(question, given(one("r0", "p2/d2")))
