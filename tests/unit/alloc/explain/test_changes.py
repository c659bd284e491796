"""Changes that were tried."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain import explain
from devlet.alloc.explain.changes import CHANGES_MAX, Verified, helpful, merged
from devlet.alloc.explain.proposals import Proposal
from devlet.alloc.explain.report import Change
from devlet.alloc.explain.trials import Trials
from devlet.alloc.problems import Problem

Read = Callable[..., Problem]


def changes(problem: Problem) -> list[str]:
    allocator = Allocator(problem.inventory, problem.features)
    return [change.text for change in explain(allocator, problem.nodes, problem.claims).changes]


@pytest.mark.parametrize(
    ("short", "first"),
    [
        ({"claims": [["r0 3 a"]], "slices": [{"pool": "p", "devices": 2}]}, "ask for 2 instead of 3 in request r0"),
        (
            {"claims": [["r0 a"]], "slices": [{"pool": "p", "devices": 1}], "allocated": ["p/d0"]},
            "release claim default/held-0, which holds d0",
        ),
        (
            {"claims": [["r0 2 a"]], "slices": [{"pool": "p", "devices": 2}], "allocated": ["p/d0", "p/d1"]},
            "release claims default/held-0, default/held-1, which hold d0, d1",
        ),
        (
            {"claims": [["r0 a"]], "slices": [{"pool": "p", "devices": ["d1 !k=v:NoSchedule !l=w:NoExecute"]}]},
            "let request r0 tolerate k=v:NoSchedule, l=w:NoExecute",
        ),
        (
            {
                "claims": [["r0 nothing"]],
                "slices": [{"pool": "p", "devices": 1}],
                "classes": [{"nothings": {"if": "true"}}],
            },
            "use device class nothings in request r0: there is no nothing",
        ),
    ],
)
def test_the_smallest_change_that_helps_comes_first(read: Read, short: dict[str, Any], first: str) -> None:
    assert changes(read(**short))[0] == first


def test_changes_that_do_not_help_are_not_reported(read: Read) -> None:
    slices = [{"pool": "p", "devices": ["d0 !NoSchedule"]}]
    assert changes(read(slices=slices, claims=[["r0 a", "r1 2 a"]], allocated=["p/d0"])) == []


def test_what_fits_needs_no_change(read: Read) -> None:
    assert changes(read(slices=[{"pool": "p", "devices": 2}], claims=[["r0 a"]])) == []


def test_the_number_of_changes_is_limited_and_each_is_found_once(read: Read) -> None:
    problem = read(slices=[{"pool": "p", "devices": 1}], claims=[["r0 a"]])
    allocator, node = Allocator(problem.inventory), problem.nodes[0]
    many = [Proposal(f"change {i}", 9 - i % 3, problem.claims) for i in range(9)]
    found = helpful(allocator, node, many, Trials())
    assert [each.change.size for each in found] == [7, 7, 7, 8, 8]
    assert len(merged([*found, *found])) == CHANGES_MAX


def test_of_one_group_the_first_that_helps_is_enough(read: Read) -> None:
    problem = read(slices=[{"pool": "p", "devices": 1}], claims=[["r0 a"]])
    alike = [Proposal(f"change {i}", i, problem.claims, None, "group") for i in range(3)]
    (found,) = helpful(Allocator(problem.inventory), problem.nodes[0], alike, Trials())
    assert isinstance(found, Verified)
    assert found.change == Change("change 0", 0, "node-1")


def test_without_a_budget_no_change_is_reported(read: Read) -> None:
    problem = read(slices=[{"pool": "p", "devices": 1}], claims=[["r0 a"]])
    proposal = Proposal("nothing", 1, problem.claims)
    assert helpful(Allocator(problem.inventory), problem.nodes[0], [proposal], Trials(runs=0)) == []
