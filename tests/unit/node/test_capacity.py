import pytest

from devlet.node.capacity import of_node, reset
from devlet.node.devices.inventory import Capacity
from devlet.objects.identifiers import ResourceName

GPU, FPGA = ResourceName("vendor.com/gpu"), ResourceName("vendor.com/fpga")
MACHINE = {"cpu": "4", "memory": "8Gi"}
NOTHING = Capacity({}, {}, frozenset())


def test_a_node_has_what_its_machine_and_its_plugins_have() -> None:
    found = of_node({}, MACHINE, Capacity({GPU: 4}, {GPU: 3}, frozenset()))
    assert found.capacity == {"cpu": "4", "memory": "8Gi", GPU: "4"}
    assert found.allocatable == {"cpu": "4", "memory": "8Gi", GPU: "3"}


def test_a_resource_whose_plugin_is_gone_for_good_is_shown_with_zero() -> None:
    found = of_node({GPU: "4"}, MACHINE, Capacity({}, {}, frozenset({GPU})))
    assert found.capacity[GPU] == found.allocatable[GPU] == "0"


def test_devices_that_plugins_list_but_cannot_allocate_are_not_allocatable() -> None:
    assert of_node({}, MACHINE, Capacity({GPU: 2}, {}, frozenset())).allocatable[GPU] == "0"


def test_resources_that_others_put_on_the_node_stay() -> None:
    found = of_node({FPGA: "7", "cpu": "99"}, MACHINE, NOTHING)
    assert (found.capacity[FPGA], found.allocatable[FPGA], found.capacity["cpu"]) == ("7", "7", "4")


@pytest.mark.spec("DP-8.36")
def test_a_reset_sets_only_extended_resources_to_zero() -> None:
    before = {GPU: "4", "cpu": "4", "memory": "8Gi", "hugepages-2Mi": "0", "example.kubernetes.io/x": "1"}
    assert reset(before) == {**before, GPU: "0"}
