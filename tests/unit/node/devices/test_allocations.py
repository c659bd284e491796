import pytest

from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins.devices import Grant

GPU = ResourceName("vendor.com/gpu")
A, B = PodUID("pod-a"), PodUID("pod-b")


def allocation(pod: PodUID, *ids: str, container: str = "main", resource: ResourceName = GPU) -> Allocation:
    return Allocation(pod, ContainerName(container), resource, {NO_NODE: tuple(map(DeviceID, ids))}, Grant())


def test_allocated_devices_are_taken_until_they_are_removed() -> None:
    allocations = Allocations()
    held = allocation(A, "d1", "d2")
    allocations.add(held)
    assert set(allocations.taken(GPU)) == {"d1", "d2"} and allocations.counts() == {GPU: 2}
    assert allocations.owner(GPU, DeviceID("d1")) == A and allocations.owner(GPU, DeviceID("d9")) is None
    allocations.remove(held)
    assert not allocations.taken(GPU) and not allocations.counts() and not allocations.pods() and len(allocations) == 0


def test_owners_include_reservations_and_holders_do_not() -> None:
    allocations = Allocations()
    allocations.add(allocation(A, "d1"))
    allocations.reserve(B, GPU, [DeviceID("d2")])
    devices = [DeviceID("d1"), DeviceID("d2"), DeviceID("d3")]
    assert allocations.owners(GPU, devices) == {A, B} and allocations.owners(GPU, devices[2:]) == frozenset()
    assert allocations.holders(GPU) == {A} and allocations.holders(ResourceName("vendor.com/nic")) == frozenset()


def test_a_device_never_has_two_pods() -> None:
    allocations = Allocations()
    allocations.add(allocation(A, "d1"))
    with pytest.raises(AssertionError, match="d1 belongs to pod pod-a and cannot belong to pod pod-b"):
        allocations.reserve(B, GPU, [DeviceID("d1")])


def test_two_containers_of_a_pod_may_have_the_same_device() -> None:
    allocations = Allocations()
    init, main = allocation(A, "d1", container="init"), allocation(A, "d1")
    allocations.add(init)
    allocations.add(main)
    allocations.remove(init)
    assert allocations.owner(GPU, DeviceID("d1")) == A
    allocations.remove(main)
    assert allocations.owner(GPU, DeviceID("d1")) is None


def test_a_reservation_takes_a_device_and_is_not_an_allocation() -> None:
    allocations = Allocations()
    allocations.reserve(A, GPU, [DeviceID("d1")])
    assert "d1" in allocations.taken(GPU) and not allocations.of_pod(A)
    allocations.add(allocation(A, "d1"))
    allocations.unreserve(GPU, [DeviceID("d1")])
    assert "d1" in allocations.taken(GPU) and allocations.of_pod(A)


def test_allocations_are_in_the_order_of_their_creation() -> None:
    allocations = Allocations()
    first, second, third = allocation(B, "d3"), allocation(A, "d2"), allocation(A, "d1", container="side")
    for each in (first, second, third):
        allocations.add(each)
    assert list(allocations) == [first, second, third]
    assert allocations.of_pod(A) == [second, third] and allocations.of_container(A, ContainerName("side")) == [third]


@pytest.mark.spec("DP-8.50")
def test_a_device_listed_under_two_nodes_is_one_device() -> None:
    near = Allocation(A, ContainerName("c"), GPU, {0: (DeviceID("d1"),), 1: (DeviceID("d1"),)}, Grant())
    assert near.devices == {"d1": (0, 1)}
    assert allocation(A, "d1").devices == {"d1": ()}


@pytest.mark.spec("DP-8.51")
def test_an_unknown_device_has_no_owner() -> None:
    assert Allocations().owner(GPU, DeviceID("d1")) is None


def test_taken_devices_at_the_start_of_a_list_are_skipped_until_one_is_freed() -> None:
    allocations = Allocations()
    devices = tuple(DeviceID(f"d{number}") for number in range(4))
    held = [allocation(A, "d0"), allocation(B, "d1")]
    assert allocations.taken_at_the_start(GPU, devices) == 0
    for each in held:
        allocations.add(each)
    assert allocations.taken_at_the_start(GPU, devices) == 2
    assert allocations.taken_at_the_start(GPU, (*devices[::-1],)) == 0
    allocations.reserve(A, GPU, [devices[2]])
    assert allocations.taken_at_the_start(GPU, devices) == 3
    allocations.remove(held[0])
    assert allocations.taken_at_the_start(GPU, devices) == 0
    allocations.add(held[0])
    allocations.unreserve(GPU, [devices[2]])
    assert allocations.taken_at_the_start(GPU, devices) == 2


def test_entries_are_those_of_the_allocations_after_any_changes() -> None:
    allocations = Allocations()
    held = [allocation(A, "d0"), allocation(B, "d1"), allocation(A, "d2", container="side")]
    for each in held:
        allocations.add(each)
    assert allocations.entries() == [each.entry for each in held]
    allocations.remove(held[1])
    allocations.add(held[1])
    assert allocations.entries() == [each.entry for each in allocations] == [held[i].entry for i in (0, 2, 1)]
