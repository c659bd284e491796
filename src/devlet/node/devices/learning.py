"""Holdings as a pod's own status tells them, for when the checkpoint was lost. Pure."""

from devlet.node.devices import limits
from devlet.node.devices.holdings import NO_NODE, Holding
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.objects.types.container import ContainerStatus
from devlet.objects.types.pod import Pod

__all__ = ["learned"]

_CLAIM = "claim:"  # how statuses of claims begin: those are not devices of plugins


def learned(pod: Pod) -> list[Holding]:
    status = pod.status
    return [
        holding
        for container in (*status.init_container_statuses, *status.container_statuses)
        for holding in _of_container(pod, container)
    ]


def _of_container(pod: Pod, status: ContainerStatus) -> list[Holding]:
    """A container that has ended for good holds nothing. What stands behind an extended resource may be a claim."""
    if status.state.terminated:
        return []
    claimed = limits.claimed(pod)
    return [
        Holding(
            pod.uid,
            status.name,
            ResourceName(each.name),
            {NO_NODE: tuple(DeviceID(device.resource_id) for device in each.resources)},
            None,
        )
        for each in status.allocated_resources_status
        if each.resources and not each.name.startswith(_CLAIM) and (status.name, ResourceName(each.name)) not in claimed
    ]
