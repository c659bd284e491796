"""Allocations as pod statuses contain them, for use when the checkpoint was lost. Pure."""

from devlet.node.devices import limits
from devlet.node.devices.allocations import NO_NODE, Allocation
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.objects.types.container import ContainerStatus
from devlet.objects.types.pod import Pod

__all__ = ["learned"]

_CLAIM = "claim:"  # the prefix of the statuses of claims, which are not devices of plugins


def learned(pod: Pod) -> list[Allocation]:
    status = pod.status
    return [
        allocation
        for container in (*status.init_container_statuses, *status.container_statuses)
        for allocation in _of_container(pod, container)
    ]


def _of_container(pod: Pod, status: ContainerStatus) -> list[Allocation]:
    """A terminated container has no devices. An extended resource may be satisfied by a claim."""
    if status.state.terminated:
        return []
    claimed = limits.claimed(pod)
    return [
        Allocation(
            pod.uid,
            status.name,
            ResourceName(each.name),
            {NO_NODE: tuple(DeviceID(device.resource_id) for device in each.resources)},
            None,
        )
        for each in status.allocated_resources_status
        if each.resources and not each.name.startswith(_CLAIM) and (status.name, ResourceName(each.name)) not in claimed
    ]
