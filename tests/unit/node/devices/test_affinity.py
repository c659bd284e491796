"""Devices divided by their NUMA nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.node.devices.affinity import Split, split
from devlet.node.topology import masks
from devlet.objects.identifiers import DeviceID
from devlet.plugins.devices import Device


def listed(**nodes: tuple[int, ...]) -> dict[DeviceID, Device]:
    return {DeviceID(id): Device(DeviceID(id), nodes=near) for id, near in nodes.items()}


def ids(*names: str) -> list[DeviceID]:
    return [DeviceID(name) for name in names]


@pytest.mark.spec("DP-8.38")
def test_a_device_of_any_node_of_the_mask_is_aligned() -> None:
    devices = listed(both=(1, 2), other=(1,), here=(2,))
    assert split(list(devices), devices, masks.bits([2])) == Split(ids("both", "here"), ids("other"), [])


@pytest.mark.spec("DP-8.39")
def test_without_a_mask_all_devices_are_without_affinity() -> None:
    devices = listed(a=(1,), b=())
    assert split(list(devices), devices, None) == Split([], [], ids("a", "b"))


@pytest.mark.spec("DP-8.39")
def test_without_topology_a_mask_changes_nothing() -> None:
    devices = listed(a=(), b=())
    assert split(list(devices), devices, masks.bits([0])) == Split([], [], ids("a", "b"))


@pytest.mark.spec("DP-8.39")
def test_of_devices_with_and_without_topology_the_one_on_the_node_is_aligned() -> None:
    devices = listed(a=(), b=(1,), c=())
    assert split(list(devices), devices, masks.bits([1])) == Split(ids("b"), [], ids("a", "c"))


@pytest.mark.spec("DP-8.40")
def test_what_the_hinted_node_lacks_is_on_the_others() -> None:
    devices = listed(a0=(0,), b1=(1,), c0=(0,), d1=(1,), e0=(0,))
    assert split(list(devices), devices, masks.bits([0])) == Split(ids("a0", "c0", "e0"), ids("b1", "d1"), [])
    assert split(list(devices), devices, masks.bits([1])) == Split(ids("b1", "d1"), ids("a0", "c0", "e0"), [])


@pytest.mark.spec("DP-8.41")
def test_devices_of_all_nodes_of_the_mask_are_aligned() -> None:
    devices = listed(a=(0,), b=(1,), c=(1,), d=(2,), e=(3,), f=(3,))
    assert split(list(devices), devices, masks.bits([1, 3])).aligned == ids("b", "c", "e", "f")


def test_nodes_with_fewer_devices_come_first_then_lower_ones() -> None:
    devices = listed(a=(0,), b=(0,), c=(1,), d=(2,), e=(3,), f=(3,), g=(4,), h=(5,))
    found = split(list(devices), devices, masks.bits([0, 1, 2]))
    assert found == Split(ids("c", "d", "a", "b"), ids("g", "h", "e", "f"), [])


def test_only_available_devices_count_for_a_node() -> None:
    devices = listed(a=(0,), b=(0,), c=(1,), d=(1,))
    assert split(ids("a", "b", "d"), devices, masks.bits([0, 1])).aligned == ids("d", "a", "b")


def test_devices_of_a_node_keep_the_order_in_which_they_are_given() -> None:
    devices = listed(a=(0,), b=(0,), c=(0,))
    assert split(ids("c", "a", "b"), devices, masks.bits([0])).aligned == ids("c", "a", "b")


@pytest.mark.spec("DP-9.05")
def test_a_device_that_is_not_listed_has_no_node() -> None:
    assert split(ids("gone"), {}, masks.bits([0])) == Split([], [], ids("gone"))


near = st.lists(st.integers(0, 4), max_size=3, unique=True).map(tuple)
inventories = st.dictionaries(st.text("abc", min_size=1, max_size=3).map(DeviceID), near, max_size=12)


@pytest.mark.spec("DP-9.30")
@given(inventories, st.data(), st.none() | st.integers(0, 31))
def test_every_available_device_is_in_exactly_one_part_and_always_at_the_same_place(
    nodes: dict[DeviceID, tuple[int, ...]], data: st.DataObject, affinity: int | None
) -> None:
    devices = {id: Device(id, nodes=near) for id, near in nodes.items()}
    available = [id for id in devices if data.draw(st.booleans())]
    found = split(available, devices, affinity)
    assert sorted([*found.aligned, *found.unaligned, *found.no_affinity]) == sorted(available)
    assert found == split(available, dict(reversed(devices.items())), affinity)


@given(inventories, st.integers(0, 31))
def test_a_device_is_aligned_exactly_if_it_touches_the_mask(
    nodes: dict[DeviceID, tuple[int, ...]], affinity: int
) -> None:
    found = split(list(nodes), {id: Device(id, nodes=near) for id, near in nodes.items()}, affinity)
    assert set(found.aligned) == {id for id, near in nodes.items() if masks.bits(near) & affinity}
    assert set(found.no_affinity) == {id for id, near in nodes.items() if not near}
