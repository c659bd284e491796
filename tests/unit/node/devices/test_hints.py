"""Hints of devices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.node.devices.hints import for_request, generate
from devlet.node.topology import masks
from devlet.node.topology.hints import Hint, Hints
from devlet.node.topology.machine import simulated
from devlet.node.topology.policies import Decision, Policy, decide
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.devices import UNHEALTHY, Device

Inventory = dict[DeviceID, Device]
TWO = (0, 1)


def listed(**nodes: tuple[int, ...]) -> Inventory:
    return {DeviceID(id): Device(DeviceID(id), nodes=near) for id, near in nodes.items()}


def ids(names: str) -> list[DeviceID]:
    return [DeviceID(name) for name in names.split()]


def yes(*nodes: int) -> Hint:
    return Hint(masks.bits(nodes), True)


def no(*nodes: int) -> Hint:
    return Hint(masks.bits(nodes), False)


ONE_EACH = listed(a=(0,), b=(1,))
TWO_EACH = listed(a=(0,), b=(0,), c=(1,), d=(1,))


@pytest.mark.spec("DP-8.45")
@pytest.mark.parametrize(
    ("devices", "available", "recorded", "request_", "expected"),
    [
        pytest.param(listed(a=(), b=()), "a b", "", 1, None, id="no topology"),
        pytest.param(listed(a=(), b=(1,)), "a b", "", 1, (yes(1),), id="one of two has topology"),
        pytest.param(ONE_EACH, "a b", "", 1, (yes(0), yes(1), no(0, 1)), id="one of one each"),
        pytest.param(ONE_EACH, "a b", "", 2, (yes(0, 1),), id="two of one each"),
        pytest.param(TWO_EACH, "a b c d", "", 2, (yes(0), yes(1), no(0, 1)), id="two of two each"),
        pytest.param(TWO_EACH, "a c", "", 2, (no(0, 1),), id="one of each is taken"),
        pytest.param(TWO_EACH, "a b c d", "", 6, (), id="more than there are"),
        pytest.param(listed(a=(0,), b=(0,)), "", "a b", 2, (yes(0),), id="it has them already"),
        pytest.param(TWO_EACH, "c d", "a b", 2, (yes(0), no(0, 1)), id="it has them, and there are others"),
        pytest.param(TWO_EACH, "c d", "a b", 4, (), id="it has fewer already"),
        pytest.param(TWO_EACH, "", "a b c d", 2, (), id="it has more already"),
    ],
)
def test_hints_of_a_container_or_a_pod(
    devices: Inventory, available: str, recorded: str, request_: int, expected: tuple[Hint, ...] | None
) -> None:
    held = ids(recorded) or None
    assert for_request(devices, ids(available), (), held, request_, TWO) == expected


@pytest.mark.spec("DP-8.45")
def test_reusable_devices_have_to_be_aligned() -> None:
    devices = listed(a=(0,), b=(1,))
    assert for_request(devices, ids("b"), ids("a"), None, 2, range(4)) == (yes(0, 1),)
    assert for_request(devices, ids("b"), ids("a"), None, 1, range(4)) == (yes(0), no(0, 1))


def test_reusable_devices_without_topology_are_ignored() -> None:
    devices = listed(a=(), b=(1,))
    assert generate(devices, ids("b"), ids("a"), 1, TWO) == (yes(1),)
    assert generate(devices, ids("b"), ids("a"), 2, TWO) == ()


def test_a_device_that_is_both_available_and_reusable_counts_once() -> None:
    assert for_request(ONE_EACH, ids("a"), ids("a"), None, 2, TWO) == ()
    assert generate(listed(a=(0,), b=(0,)), ids("a"), ids("a"), 2, TWO) == ()


def test_preferred_is_what_an_idle_machine_with_all_devices_in_order_would_give() -> None:
    devices = TWO_EACH | {DeviceID("b"): Device(DeviceID("b"), UNHEALTHY, (0,))}
    assert generate(devices, ids("a c d"), (), 2, TWO) == (yes(1), no(0, 1))
    assert generate(devices, ids("a c"), (), 2, TWO) == (no(0, 1),)


def test_a_device_of_two_nodes_counts_for_both() -> None:
    devices = listed(a=(0, 1), b=(1,))
    assert generate(devices, ids("a b"), (), 1, TWO) == (yes(0), yes(1), no(0, 1))
    assert generate(devices, ids("a b"), (), 2, TWO) == (yes(1), no(0, 1))


@pytest.mark.spec("DP-8.47")
def test_two_resources_have_separate_hints() -> None:
    gpus, nics = TWO_EACH, listed(n=(1,))
    hints: Hints = {
        ResourceName("example.com/gpu"): for_request(gpus, ids("a c"), (), None, 2, TWO),
        ResourceName("example.com/nic"): for_request(nics, ids("n"), (), None, 1, TWO),
    }
    assert list(hints.values()) == [(no(0, 1),), (yes(1),)]


@pytest.mark.spec("DP-8.48")
def test_only_nodes_with_devices_are_combined() -> None:
    devices = listed(a=(0,), b=(1,))
    assert generate(devices, ids("a b"), (), 1, range(34)) == (yes(0), yes(1), no(0, 1))


@pytest.mark.spec("DP-8.48")
def test_the_full_mask_is_included_once() -> None:
    devices = listed(a=(0,), b=(1,))
    assert generate(devices, ids("a b"), (), 2, TWO) == (yes(0, 1),)


@pytest.mark.spec("DP-8.48")
def test_devices_without_topology_add_no_node() -> None:
    assert generate(listed(a=(), b=(3,)), ids("a b"), (), 1, range(4)) == (yes(3),)


@pytest.mark.spec("DP-8.48")
def test_nodes_that_the_machine_does_not_have_are_dropped() -> None:
    assert generate(listed(a=(0, 9), b=(9,)), ids("a b"), (), 1, TWO) == (yes(0),)
    assert generate(listed(a=(9,)), ids("a"), (), 1, TWO) == ()


@pytest.mark.spec("DP-9.05")
@pytest.mark.parametrize(("available", "reusable", "recorded"), [("a x", "", None), ("a", "x", None), ("", "", "a x")])
def test_a_device_that_is_not_listed_has_no_node(available: str, reusable: str, recorded: str | None) -> None:
    held = ids(recorded) if recorded else None
    assert for_request(ONE_EACH, ids(available), ids(reusable), held, 2, TWO) == ()


@pytest.mark.spec("DP-8.49")
@pytest.mark.parametrize("policy", [Policy.BEST_EFFORT, Policy.RESTRICTED])
def test_hints_of_one_node_meet_those_of_processors_on_the_same_node(policy: Policy) -> None:
    machine = simulated(2)
    gpu: Hints = {ResourceName("example.com/gpu"): for_request(listed(a=(1,)), ids("a"), (), None, 1, machine.nodes)}
    cpu: Hints = {ResourceName("cpu"): (yes(0), yes(1), no(0, 1))}
    assert decide(policy, [gpu, cpu], machine, prefer_closest=False) == Decision(masks.bits([1]), True)


near = st.lists(st.integers(0, 5), max_size=3, unique=True).map(tuple)
inventories = st.dictionaries(st.text("abcd", min_size=1, max_size=2).map(DeviceID), near, max_size=12)


def touching(devices: Inventory, chosen: set[DeviceID], mask: int) -> int:
    return sum(bool(masks.bits(devices[id].nodes) & mask) for id in chosen if id in devices)


@given(inventories, st.data(), st.integers(1, 6))
def test_hints_are_exactly_the_combinations_that_can_be_met(
    nodes: dict[DeviceID, tuple[int, ...]], data: st.DataObject, request: int
) -> None:
    devices = {id: Device(id, nodes=near) for id, near in nodes.items()}
    place = {id: data.draw(st.sampled_from(["available", "reusable", "taken"])) for id in devices}
    available = {id for id in devices if place[id] == "available"}
    reusable = {id for id in devices if place[id] == "reusable" and devices[id].nodes}
    hints = generate(devices, available, reusable, request, range(6))
    bearing = sorted({node for near in nodes.values() for node in near}) or range(6)
    assert [hint.mask for hint in hints] == [
        mask
        for mask in masks.iterate(bearing)
        if touching(devices, available | reusable, mask) >= request
        and touching(devices, reusable, mask) == len(reusable)
    ]


@given(inventories, st.integers(1, 6))
def test_on_an_idle_machine_the_narrowest_hints_are_the_preferred_ones(
    nodes: dict[DeviceID, tuple[int, ...]], request: int
) -> None:
    devices = {id: Device(id, nodes=near) for id, near in nodes.items()}
    hints = generate(devices, list(devices), (), request, range(6))
    narrowest = min((masks.count(hint.mask or 0) for hint in hints), default=0)
    assert all(hint.preferred == (masks.count(hint.mask or 0) == narrowest) for hint in hints)


@pytest.mark.spec("DP-9.29")
def test_sixty_four_nodes_with_devices_give_single_nodes_pairs_and_all() -> None:
    devices = {DeviceID(f"d{node}"): Device(DeviceID(f"d{node}"), nodes=(node,)) for node in range(64)}
    hints = generate(devices, list(devices), (), 1, range(64))
    assert [masks.count(hint.mask or 0) for hint in hints] == [1] * 64 + [2] * 2016 + [64]
    assert all(hint.preferred == (index < 64) for index, hint in enumerate(hints))
    assert generate(devices, list(devices), (), 64, range(64)) == (yes(*range(64)),)
