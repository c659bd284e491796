"""Many claims on many nodes, against loops that ask every node every time."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.alloc import Allocator, Fit, Rules, Scan, held_devices
from devlet.alloc.placement import MODES, Mode, nodes_to_find, place
from devlet.alloc.problems import Problem, read_problem
from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from tests.support.allocation.shorthand import problem
from tests.support.problems.generator import bench_problem, mixed_problem


def naive(problem: Problem, allocator: Allocator, mode: Mode) -> list[str | None]:
    start, nodes, ids = 0, problem.nodes, count()
    enough = nodes_to_find(len(nodes)) if mode == "scheduler" else 1
    placed: list[str | None] = []
    for claim in problem.claims:
        order = [*range(start, len(nodes)), *range(start)]
        found = []
        for i in order:
            with suppress(InvalidInput):
                outcome = allocator.allocate(nodes[i], [claim])
                if isinstance(outcome, Fit):
                    found.append((i, outcome))
            if len(found) == enough:
                break
        if mode == "fill-rotate" and found:
            start = found[0][0]
        if mode == "scheduler" and len(found) == enough:
            start = (found[-1][0] + 1) % len(nodes)
        placed.append(nodes[found[0][0]].name if found else None)
        if found:
            held = held_devices(found[0][1].chosen[0], lambda: f"id-{next(ids)}")
            allocator.inventory.hold_devices(claim.metadata.namespace, claim.metadata.name, held)
    return placed


def placed(document: Document, mode: Mode, rules: Rules = Rules()) -> list[str | None]:
    read, ids = read_problem(document), count()
    scan = Scan(Allocator(read.inventory, read.features, rules), read.nodes)
    return list(place(scan, read.claims, mode, lambda: f"id-{next(ids)}"))


def expected(document: Document, mode: Mode, rules: Rules = Rules()) -> list[str | None]:
    read = read_problem(document)
    return naive(read, Allocator(read.inventory, read.features, rules), mode)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=20)
@given(seeds=st.lists(st.integers(0, 1 << 20), min_size=2, max_size=2))
def test_claims_go_where_a_loop_over_all_nodes_would_put_them(mode: Mode, seeds: list[int]) -> None:
    document = mixed_problem(seeds[0])
    more = mixed_problem(seeds[1])["claims"]
    claims = [
        c | {"metadata": {"name": f"c{i}", "namespace": "n"}} for i, c in enumerate([*document["claims"], *more] * 3)
    ]
    document = document | {"claims": claims}
    assert placed(document, mode) == expected(document, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rules", [Rules(), Rules.reference()], ids=["improved", "reference"])
def test_the_benchmark_s_problem_fills_every_node(mode: Mode, rules: Rules) -> None:
    document = bench_problem(6, 8, claims=13)
    found = placed(document, mode, rules)
    assert found == expected(document, mode, rules)
    assert (found[-1], len(set(found[:-1]))) == (None, 6)


def names(found: Sequence[str | None]) -> str:
    return " ".join(name or "-" for name in found)


def test_fill_begins_with_the_first_node_each_time_and_rotate_stays() -> None:
    document = bench_problem(3, 8, claims=5)
    assert names(placed(document, "fill")) == "n0 n0 n1 n1 n2"
    document = bench_problem(3, 8, claims=0)
    assert placed(document, "fill") == []


def test_the_scheduler_moves_on() -> None:
    assert names(placed(bench_problem(3, 8, claims=4), "scheduler")) == "n0 n0 n1 n1"


def test_an_invalid_claim_is_not_placed_but_the_others_are() -> None:
    slices = [{"pool": "p1", "devices": 2}]
    document = problem({"case": "c", "slices": slices, "claims": [["r0 a"], ["r0 c"], ["r0 33 a"], ["r0 a"]]})
    assert names(placed(document, "fill")) == "node-1 - - node-1"


@pytest.mark.parametrize(
    ("nodes", "enough"), [(0, 0), (1, 1), (100, 100), (101, 100), (1000, 420), (5000, 500), (10_000, 500)]
)
def test_the_scheduler_looks_for_a_share_that_falls_with_the_number_of_nodes(nodes: int, enough: int) -> None:
    assert nodes_to_find(nodes) == enough
