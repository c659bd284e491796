"""Policies of topology."""

import pytest

from devlet.node.topology import masks
from devlet.node.topology.hints import Hint, Hints, Mask
from devlet.node.topology.machine import Machine, simulated
from devlet.node.topology.policies import Decision, Policy, decide
from devlet.objects.identifiers import ResourceName

GPU, CPU, MEMORY = ResourceName("example.com/gpu"), ResourceName("cpu"), ResourceName("memory")
TWO = simulated(2)


def yes(*nodes: int) -> Hint:
    return Hint(masks.bits(nodes), True)


def no(*nodes: int) -> Hint:
    return Hint(masks.bits(nodes), False)


def decided(policy: Policy, *provided: Hints | None, machine: Machine = TWO, prefer_closest: bool = False) -> Decision:
    return decide(policy, provided, machine, prefer_closest=prefer_closest)


def test_policies_have_the_names_that_kubernetes_gives_them() -> None:
    assert list(Policy) == ["none", "best-effort", "restricted", "single-numa-node"]


@pytest.mark.spec("DP-8.70")
def test_policy_none_admits_all_pods_without_affinity() -> None:
    assert decided(Policy.NONE, {GPU: []}, {GPU: [yes(0)]}) == Decision(None, True)


@pytest.mark.spec("DP-8.70")
@pytest.mark.parametrize(("policy", "admitted"), [(Policy.BEST_EFFORT, True), (Policy.RESTRICTED, False)])
def test_best_effort_accepts_what_restricted_rejects(policy: Policy, admitted: bool) -> None:
    assert decided(policy, {GPU: [yes(0)]}, {GPU: [yes(1)]}) == Decision(0b11, admitted)
    assert decided(policy, {GPU: []}) == Decision(0b11, admitted)
    assert decided(policy, {GPU: [no(0)]}) == Decision(0b01, admitted)


@pytest.mark.parametrize("policy", [Policy.BEST_EFFORT, Policy.RESTRICTED])
def test_a_preferred_hint_may_have_several_nodes(policy: Policy) -> None:
    assert decided(policy, {GPU: [yes(0, 1)]}) == Decision(0b11, True)


@pytest.mark.spec("DP-8.70")
@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ([yes(0), yes(1), no(0, 1)], Decision(0b01, True)),
        ([no(0), yes(1)], Decision(0b10, True)),
        ([yes(0, 1)], Decision(None, False)),
        ([no(0)], Decision(None, False)),
        ([], Decision(None, False)),
        (None, Decision(None, True)),
        ([Hint(None, True)], Decision(None, True)),
    ],
)
def test_single_numa_node_keeps_preferred_hints_of_one_node_or_none(
    hints: list[Hint] | None, expected: Decision
) -> None:
    assert decided(Policy.SINGLE_NUMA_NODE, {GPU: hints}) == expected


def test_on_a_machine_with_one_node_a_single_node_is_not_a_restriction() -> None:
    assert decided(Policy.SINGLE_NUMA_NODE, {GPU: [yes(0)]}, machine=simulated(1)) == Decision(None, True)


@pytest.mark.spec("DP-8.71")
@pytest.mark.parametrize("policy", list(Policy))
def test_without_any_hints_every_policy_admits(policy: Policy) -> None:
    assert decided(policy).admitted
    assert decided(policy, None, {}).admitted


@pytest.mark.spec("DP-8.49")
@pytest.mark.parametrize("policy", [Policy.BEST_EFFORT, Policy.RESTRICTED])
@pytest.mark.parametrize(("nodes", "node"), [((0, 1), 0), ((0, 1), 1), ((1, 7), 7)])
def test_devices_processors_and_memory_of_one_node_are_aligned_there(
    policy: Policy, nodes: tuple[int, int], node: int
) -> None:
    both: list[Hint] = [yes(nodes[0]), yes(nodes[1]), no(*nodes)]
    decision = decided(policy, {GPU: [yes(node)]}, {CPU: both}, {MEMORY: both}, machine=Machine(nodes))
    assert decision == Decision(masks.bits([node]), True)


@pytest.mark.parametrize(("prefer_closest", "expected"), [(False, (1, 2)), (True, (2, 3))])
def test_closest_nodes_are_preferred_if_the_option_is_set(prefer_closest: bool, expected: tuple[int, ...]) -> None:
    ring = Machine((0, 1, 2, 3), ((10, 11, 12, 12), (11, 10, 12, 12), (12, 12, 10, 11), (12, 12, 11, 10)))
    hints: Hints = {GPU: [yes(1, 2), yes(2, 3)]}
    wanted: Mask = masks.bits(expected)
    assert decided(Policy.RESTRICTED, hints, machine=ring, prefer_closest=prefer_closest) == Decision(wanted, True)
