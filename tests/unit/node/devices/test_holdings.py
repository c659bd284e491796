import pytest

from devlet.node.devices.holdings import NO_NODE, Holding, Holdings
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins.devices import Grant

GPU = ResourceName("vendor.com/gpu")
A, B = PodUID("pod-a"), PodUID("pod-b")


def holding(pod: PodUID, *ids: str, container: str = "main", resource: ResourceName = GPU) -> Holding:
    return Holding(pod, ContainerName(container), resource, {NO_NODE: tuple(map(DeviceID, ids))}, Grant())


def test_what_is_held_is_taken_and_what_is_removed_is_free() -> None:
    holdings = Holdings()
    held = holding(A, "d1", "d2")
    holdings.add(held)
    assert set(holdings.taken(GPU)) == {"d1", "d2"} and holdings.counts() == {GPU: 2}
    assert holdings.owner(GPU, DeviceID("d1")) == A and holdings.owner(GPU, DeviceID("d9")) is None
    holdings.remove(held)
    assert not holdings.taken(GPU) and not holdings.counts() and not holdings.pods() and len(holdings) == 0


def test_a_device_never_has_two_pods() -> None:
    holdings = Holdings()
    holdings.add(holding(A, "d1"))
    with pytest.raises(AssertionError, match="d1 is of pod pod-a and cannot be of pod pod-b"):
        holdings.reserve(B, GPU, [DeviceID("d1")])


def test_two_containers_of_a_pod_may_hold_one_device() -> None:
    holdings = Holdings()
    init, main = holding(A, "d1", container="init"), holding(A, "d1")
    holdings.add(init)
    holdings.add(main)
    holdings.remove(init)
    assert holdings.owner(GPU, DeviceID("d1")) == A
    holdings.remove(main)
    assert holdings.owner(GPU, DeviceID("d1")) is None


def test_a_reservation_takes_a_device_and_is_not_a_holding() -> None:
    holdings = Holdings()
    holdings.reserve(A, GPU, [DeviceID("d1")])
    assert "d1" in holdings.taken(GPU) and not holdings.of_pod(A)
    holdings.add(holding(A, "d1"))
    holdings.unreserve(GPU, [DeviceID("d1")])
    assert "d1" in holdings.taken(GPU) and holdings.of_pod(A)


def test_holdings_come_in_the_order_of_their_creation() -> None:
    holdings = Holdings()
    first, second, third = holding(B, "d3"), holding(A, "d2"), holding(A, "d1", container="side")
    for each in (first, second, third):
        holdings.add(each)
    assert list(holdings) == [first, second, third]
    assert holdings.of_pod(A) == [second, third] and holdings.of_container(A, ContainerName("side")) == [third]


@pytest.mark.spec("DP-8.50")
def test_a_device_under_two_nodes_is_one_device_near_to_both() -> None:
    near = Holding(A, ContainerName("c"), GPU, {0: (DeviceID("d1"),), 1: (DeviceID("d1"),)}, Grant())
    assert near.devices == {"d1": (0, 1)}
    assert holding(A, "d1").devices == {"d1": ()}


@pytest.mark.spec("DP-8.51")
def test_an_unknown_device_has_no_owner() -> None:
    assert Holdings().owner(GPU, DeviceID("d1")) is None


def test_devices_that_are_taken_at_the_start_of_a_list_are_skipped_until_one_is_given_back() -> None:
    holdings = Holdings()
    devices = tuple(DeviceID(f"d{number}") for number in range(4))
    held = [holding(A, "d0"), holding(B, "d1")]
    assert holdings.taken_at_the_start(GPU, devices) == 0
    for each in held:
        holdings.add(each)
    assert holdings.taken_at_the_start(GPU, devices) == 2
    assert holdings.taken_at_the_start(GPU, (*devices[::-1],)) == 0
    holdings.reserve(A, GPU, [devices[2]])
    assert holdings.taken_at_the_start(GPU, devices) == 3
    holdings.remove(held[0])
    assert holdings.taken_at_the_start(GPU, devices) == 0
    holdings.add(held[0])
    holdings.unreserve(GPU, [devices[2]])
    assert holdings.taken_at_the_start(GPU, devices) == 2


def test_entries_are_those_of_the_holdings_whatever_came_and_went() -> None:
    holdings = Holdings()
    held = [holding(A, "d0"), holding(B, "d1"), holding(A, "d2", container="side")]
    for each in held:
        holdings.add(each)
    assert holdings.entries() == [each.entry for each in held]
    holdings.remove(held[1])
    holdings.add(held[1])
    assert holdings.entries() == [each.entry for each in holdings] == [held[i].entry for i in (0, 2, 1)]
