"""Explanations of many nodes."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain import Explanation, explain
from devlet.alloc.problems import Problem, read_problem
from devlet.alloc.search import Limits
from devlet.objects.identifiers import DeviceName, PoolName
from devlet.objects.types.claim import DeviceResult
from tests.support.problems.generator import BENCH_DRIVER, bench_problem, symmetric_problem

Read = Callable[..., Problem]


def explained(problem: Problem, **options: Any) -> Explanation:
    return explain(Allocator(problem.inventory, problem.features), problem.nodes, problem.claims, **options)


def three_nodes(read: Read) -> Problem:
    slices = [
        {"pool": "p1", "devices": 2, "at": "node-1"},
        {"pool": "p2", "devices": ["d0 !NoSchedule", "d1 !NoSchedule"], "at": "node-2"},
    ]
    return read(nodes=("node-2", "node-3"), slices=slices, claims=[["gpu 2 a"]], allocated=["p1/d0"])


@pytest.mark.spec("DA-11.04")
def test_nodes_are_counted_by_what_keeps_them_away(read: Read) -> None:
    found = explained(three_nodes(read))
    assert not found.fits
    assert found.claims == ("default/claim-0",)
    assert found.summary == (
        "0/3 nodes are available: 1 node(s): request gpu finds no free devices (tainted); "
        "1 node(s): request gpu finds too few free devices (in use); "
        "1 node(s): request gpu finds no devices on the node"
    )
    assert sum(count for _, count in found.causes) == 3


def test_the_nearest_node_comes_first(read: Read) -> None:
    assert [report.node for report in explained(three_nodes(read)).nodes] == ["node-2", "node-1", "node-3"]


def test_all_nodes_are_described_in_their_order_if_asked_for(read: Read) -> None:
    slices = [{"pool": f"p{i}", "devices": 1, "at": f"node-{i}"} for i in range(1, 10)]
    problem = read(nodes=tuple(f"node-{i}" for i in range(2, 10)), slices=slices, claims=[["gpu 2 a"]])
    assert len(explained(problem).nodes) == 5
    reports = explained(problem, all_nodes=True).nodes
    assert [report.node for report in reports] == [f"node-{i}" for i in range(1, 10)]
    assert {verdict.device.pool for verdict in reports[3].requests[0].verdicts if verdict.kind == "free"} == {"p4"}


def test_claims_that_fit_report_their_devices(read: Read) -> None:
    found = explained(read(nodes=("node-2",), slices=[{"pool": "p", "devices": 2}], claims=[["gpu a"]]))
    assert (found.fits, found.summary, found.changes) == (True, "1/2 nodes are available: node-1", ())
    report = found.nodes[0]
    assert (report.outcome, report.conflict) == ("fit", None)
    assert report.text == "default/claim-0 gets a.example.com/p/d0 for gpu"


def test_claims_that_are_wrong_are_an_error_on_every_node(read: Read) -> None:
    found = explained(read(nodes=("node-2",), slices=[{"pool": "p", "devices": 2}], claims=[["gpu nowhere"]]))
    assert not found.fits
    assert {report.outcome for report in found.nodes} == {"error"}
    assert found.causes[0][1] == 2
    assert 'deviceclass.resource.k8s.io "nowhere" not found' in found.summary


def test_a_summary_is_one_line(read: Read) -> None:
    found = explained(read(slices=[{"pool": "p", "devices": 1}], claims=[["gpu a if nonsense("]]))
    assert "\n" not in found.summary


def test_a_search_that_is_given_up_is_unknown() -> None:
    problem = read_problem(symmetric_problem(12, 4))
    found = explained(problem, limits=lambda: Limits(steps=3))
    assert found.nodes[0].outcome == "unknown"
    assert found.nodes[0].conflict is None
    assert not found.fits


def test_no_claims_have_an_explanation() -> None:
    problem = read_problem({"nodes": [{"metadata": {"name": "n"}}]})
    assert explained(problem).fits
    assert explain(Allocator(problem.inventory), [], []).summary == "0/0 nodes are available"


def test_an_invalid_node_selector_is_an_error(read: Read) -> None:
    wrong = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Nonsense"}]}]}
    spec = {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeSelector": wrong}
    document = {
        "nodes": [{"metadata": {"name": "n"}}],
        "slices": [{"metadata": {"name": "s"}, "spec": spec | {"devices": [{"name": "d0"}]}}],
    }
    report = explained(read_problem(document)).nodes[0]
    assert report.outcome == "error"
    assert "node selector" in report.text


def test_the_inventory_stays_as_it_is(read: Read) -> None:
    problem = three_nodes(read)
    before = (problem.inventory.revisions.now, dict(problem.inventory.pool_revisions))
    explained(problem)
    assert before == (problem.inventory.revisions.now, dict(problem.inventory.pool_revisions))


@pytest.mark.long
def test_thousands_of_nodes_are_examined_once_per_situation() -> None:
    problem = read_problem(bench_problem(2000, 8, 1))
    for i, node in enumerate(problem.nodes):
        held = [
            DeviceResult(driver=BENCH_DRIVER, pool=PoolName(node.name), device=DeviceName(f"dev-{d}"))  # type: ignore[arg-type]
            for d in (3, 7, i % 3)
        ]
        problem.inventory.hold_devices("default", f"held-{node.name}", held)
    runs = 0

    def limits() -> Limits:
        nonlocal runs
        runs += 1
        return Limits()

    found = explained(problem, limits=limits)
    assert found.summary == "0/2000 nodes are available: 2000 node(s): request r finds no free devices (in use)"
    assert len(found.nodes) == 5
    assert runs < 100
    assert found.changes


def test_giving_up_at_once_reports_an_unknown_result(read: Read) -> None:
    slow = "size(device.driver) > 0 && [1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, RANGE)"
    for variable in "bcdef":
        slow = slow.replace("RANGE", f"[1, 2, 3, 4, 5, 6, 7, 8, 9].all({variable}, RANGE)")
    slow = slow.replace("RANGE", 'device.driver != ""')
    problem = read(slices=[{"pool": "p", "devices": 60}], claims=[[f"gpu a if {slow}"]])
    found = explained(problem, limits=lambda: Limits(give_up=lambda: True))
    assert not found.fits
    assert found.nodes[0].outcome == "unknown"
