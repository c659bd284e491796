"""Small random problems with all features mixed: what brute force finds is found, and what is given keeps all rules."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.alloc.problems import solve_problem
from devlet.objects.documents import Document
from tests.support.allocation.brute_force import feasible
from tests.support.allocation.check import IMPROVED, REFERENCE, check
from tests.support.allocation.selectors import selector_matches
from tests.support.allocation.shorthand import problem

# Answers to problems are repeatable, so all share IDs in them are the same.
NUMBERED = replace(IMPROVED, unique_shares=False)

VALUES = ["x=a", "x=b", "x=1", "x=[a,b]", "x=[b,c]", "x=[a]", "x=v1.0.0"]
LANES = ["lanes:2", "lanes:4", "lanes:8", "lanes:4(default=2,min=2,step=2,max=4)", "lanes:4(default=1,values=1|3)"]
USES = ["set1.n-=1", "set1.n-=2", "set2.n-=2", "set1.n-=1 set2.n-=1"]
TAINTS = ["!hot=1:NoSchedule", "!hot=2:NoExecute", "!None"]
TOLERATIONS = ["~hot:NoSchedule", "~hot=2:NoExecute", "~"]
FEATURES = ["AdminAccess", "ConsumableCapacity", "DeviceBindingAndStatus", "DeviceTaints", "PartitionableDevices"]


def words(*choices: list[str]) -> st.SearchStrategy[str]:
    """Of each list one word or none."""
    return st.tuples(*(st.sampled_from(["", *each]) for each in choices)).map(
        lambda parts: " ".join(filter(None, parts))
    )


DEVICE = words(VALUES, ["kind=p", "kind=q"], LANES, ["shared"], USES, TAINTS, ["?Ready"], ["bindsToNode"])
WISH = words(["kind=p"], ["lanes:1", "lanes:2", "lanes:3"], TOLERATIONS)
COUNT = st.sampled_from(["1", "1", "1", "2", "all"])


@st.composite
def requests(draw: st.DrawFn) -> list[Any]:
    found: list[Any] = []
    for i in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 3)):
            admin = draw(st.sampled_from(["", "", "", "admin"]))
            found.append(f"r{i} {draw(COUNT)} a {draw(WISH)} {admin}")
        else:
            found.append({f"r{i}": [f"s{j} {draw(COUNT)} a {draw(WISH)}" for j in range(draw(st.integers(1, 2)))]})
    return found


CONSTRAINT = st.builds(
    "{} x{}".format,
    st.sampled_from(["match", "distinct"]),
    st.sampled_from(["", " of r0", " of r0,r1", " of r0/s0,r1"]),
)
CLAIM = st.fixed_dictionaries({"requests": requests(), "constraints": st.lists(CONSTRAINT, max_size=2)})


@st.composite
def problems(draw: st.DrawFn) -> Document:
    devices = [f"d{i} {text}" for i, text in enumerate(draw(st.lists(DEVICE, min_size=1, max_size=6)))]
    cut = draw(st.integers(0, len(devices)))
    there = draw(st.sampled_from(["node-1", "all", "region=region-1", "node-2"]))
    sets = {f"set{i}": {"n": draw(st.integers(1, 4))} for i in (1, 2)}
    slices = [
        each
        for pool, at, part in (("p1", "node-1", devices[:cut]), ("p2", there, devices[cut:]))
        for each in ({"pool": pool, "at": at, "devices": part}, {"pool": pool, "at": "all", "counters": sets})
        if part
    ]
    return problem(
        {
            "case": "random",
            "slices": slices,
            "allocated": [text for slice_ in slices for text in draw(held(slice_))],
            "claims": draw(st.lists(CLAIM, min_size=1, max_size=1) | st.tuples(CLAIM, CLAIM).map(list)),
            "without": draw(
                st.lists(st.sampled_from(FEATURES), max_size=1) if draw(st.integers(0, 9)) == 0 else st.just([])
            ),
        }
    )


@st.composite
def held(draw: st.DrawFn, slice_: Document) -> list[str]:
    found = []
    for text in slice_.get("devices", []):
        if draw(st.integers(0, 4)) == 0:
            share = " shared" + " lanes:1" * ("lanes" in text) if "shared" in text else ""
            found.append(f"{slice_['pool']}/{text.split()[0]}{share}")
    return found


@settings(max_examples=40)
@given(problems())
def test_an_allocation_is_found_whenever_brute_force_finds_one(document: Document) -> None:
    (answer,) = solve_problem(document, reference_compatible=False)
    exists = feasible(document, "node-1", selector_matches(document), NUMBERED)
    assert (answer["outcome"] == "fit") == (exists is True), (answer.get("error"), exists)


@settings(max_examples=40)
@given(problems())
def test_allocations_obey_all_rules(document: Document) -> None:
    for rules, reference_compatible in ((REFERENCE, True), (NUMBERED, False)):
        (answer,) = solve_problem(document, reference_compatible=reference_compatible)
        if answer["outcome"] == "fit":
            assert check(document, "node-1", answer["results"], selector_matches(document), rules) == []


def fits(**parts: Any) -> bool:
    document = problem({"case": "small", **parts})
    (answer,) = solve_problem(document, reference_compatible=False)
    assert feasible(document, "node-1", selector_matches(document), NUMBERED) is True
    return bool(answer["outcome"] == "fit")


def test_all_devices_that_break_a_constraint_leave_the_other_alternatives() -> None:
    claim = {"requests": [{"r0": ["s0 all a", "s1 1 a"]}], "constraints": ["match x"]}
    assert fits(slices=[{"pool": "p1", "devices": ["d0 x=a", "d1 x=b"]}], claims=[claim])


def test_a_share_that_is_held_without_capacity_holds_the_counters_too() -> None:
    slices = [{"pool": "p1", "devices": ["d0 shared set1.n-=2"]}, {"pool": "p1", "counters": {"set1": {"n": 2}}}]
    assert fits(slices=slices, allocated=["p1/d0 shared"], claims=[["r0 a"]])
