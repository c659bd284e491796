from typing import Any

import pytest

from devlet.alloc import Rules
from devlet.alloc.candidates import Candidates
from devlet.alloc.steps import Step
from devlet.errors import InvalidInput
from tests.support.allocation.desk import Desk

ALL = [["r0 all a"]]


def step(rules: Rules = Rules(), **short: Any) -> Step:
    """Of the first alternative of the only request."""
    desk = Desk(rules=rules, **short)
    allocator = desk.allocator
    candidates = Candidates(desk.inventory, allocator.selectors, allocator.features, rules)
    wanted = allocator.read(desk.claims)
    return candidates.steps(0, desk.claims[0], wanted.requests[0], allocator.layout(desk.node))[0][0]


def names(step: Step) -> list[str]:
    return [entry.device.name for entry in step.candidates]


def test_candidates_match_reach_the_node_are_free_and_tolerated() -> None:
    slices = [
        {"pool": "p1", "devices": ["d1 kind=x", "d2 kind=y", "d3 kind=x !NoExecute", "d4 kind=x"]},
        {"pool": "p2", "at": "node-2", "devices": ["d5 kind=x"]},
        {"pool": "b/p3", "devices": ["d6 kind=x"]},
    ]
    assert names(step(slices=slices, allocated=["p1/d4"], claims=[["r0 a kind=x"]])) == ["d1"]
    assert names(step(slices=slices, allocated=["p1/d4"], claims=[["r0 a kind=x ~NoExecute"]])) == ["d1", "d3"]


@pytest.mark.spec("DA-3.5a")
def test_admin_access_may_have_what_is_taken() -> None:
    slices = [{"pool": "p1", "devices": ["d1", "d2"]}]
    assert names(step(slices=slices, allocated=["p1/d1"], claims=[["r0 a admin"]])) == ["d1", "d2"]


@pytest.mark.spec("DA-3.6d")
def test_devices_with_binding_conditions_are_no_candidates_while_the_feature_is_off() -> None:
    slices = [{"pool": "p1", "devices": ["d1 ?Ready", "d2"]}]
    for claims in ([["r0 a"]], ALL):
        assert names(step(slices=slices, claims=claims, without=["DeviceBindingAndStatus"])) == ["d2"]
        assert names(step(slices=slices, claims=claims)) == ["d1", "d2"]


@pytest.mark.spec("DA-3.4e")
def test_all_includes_matching_devices_even_if_they_are_in_use() -> None:
    slices = [{"pool": "p1", "devices": ["d1 lanes:8", "d2 lanes:1", "d3", "d4 lanes:8 !NoSchedule", "d5 lanes:8"]}]
    found = step(slices=slices, allocated=["p1/d5"], claims=[["r0 all a lanes:2"]])
    assert (names(found), found.number) == (["d1", "d4", "d5"], 3)


@pytest.mark.spec("DA-3.4e")
def test_all_is_not_less_while_a_device_is_in_use() -> None:
    slices = [{"pool": "p1", "devices": ["d1", "d2"]}]
    assert Desk(slices=slices, claims=ALL).ask() == [["r0 p1/d1", "r0 p1/d2"]]
    assert not Desk(slices=slices, allocated=["p1/d2"], claims=ALL).fits()
    assert not Desk(slices=[], claims=ALL).fits()


BROKEN = {"pool": "b/p1", "devices": ["d1", "d1"]}
UPDATED = {"pool": "b/p1", "of": 2, "devices": ["d1"]}
USABLE = {"pool": "p2", "devices": ["d1"]}


@pytest.mark.spec("DA-3.4f")
@pytest.mark.parametrize(("other", "state"), [(BROKEN, "invalid"), (UPDATED, "being updated")])
def test_the_reference_gives_no_all_while_any_pool_is_not_usable(other: Any, state: str) -> None:
    text = f"request r0: asks for all devices, but resource pool b.example.com/p1 is currently {state}"
    with pytest.raises(InvalidInput, match=text):
        step(Rules.reference(), slices=[other, USABLE], claims=ALL)


@pytest.mark.spec("DA-11.07")
@pytest.mark.parametrize("other", [BROKEN, UPDATED])
def test_a_pool_that_cannot_match_does_not_block_all(other: Any) -> None:
    assert names(step(slices=[other, USABLE], claims=ALL)) == ["d1"]
    with pytest.raises(InvalidInput, match=r"asks for all devices, but resource pool b.example.com/p1"):
        step(slices=[other, USABLE], claims=[["r0 all b"]])


def test_failures_are_kept_with_the_text_for_people() -> None:
    slices = [{"pool": "p1", "devices": ["d1", "d2 kind=x", "d3"]}]
    found = step(Rules.reference(), slices=slices, allocated=["p1/d3"], claims=[["r0 a kind=x"]])
    text = "claim default/claim-0: selector #0: CEL runtime error: no such key: kind"
    assert {entry.device.name: why for entry, why in found.failures.items()} == {"d1": text}
    classes = [{"a": {"if": 'device.attributes["a.example.com"].kind == "x"'}}]
    found = step(Rules.reference(), slices=slices, classes=classes, claims=[["r0 a"]])
    assert set(found.failures.values()) == {"class a: selector #0: CEL runtime error: no such key: kind"}


@pytest.mark.spec("DA-3.6b")
def test_a_failing_selector_of_all_is_an_error_even_for_a_device_in_use() -> None:
    slices = [{"pool": "p1", "devices": ["d1", "d2 kind=x"]}]
    with pytest.raises(InvalidInput, match=r"claim default/claim-0: selector #0: CEL runtime error"):
        step(Rules.reference(), slices=slices, allocated=["p1/d1"], claims=[["r0 all a kind=x"]])
