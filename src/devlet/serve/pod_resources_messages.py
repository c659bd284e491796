"""The messages of the PodResources service, built from values.

A device that is local to several NUMA nodes is listed once for each, as by a kubelet. The order is always the same.
Sidecars come before the other containers; other init containers are not listed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.plugins.devices import Device
from devlet.wire.podresources_v1 import api_pb2 as v1
from devlet.wire.podresources_v1alpha1 import api_pb2 as v1alpha1

__all__ = [
    "ClaimDevice",
    "Dynamic",
    "DynamicResource",
    "Held",
    "allocatable",
    "pod_resources",
    "pod_resources_v1alpha1",
]

Nodes = Mapping[ResourceName, Mapping[DeviceID, Sequence[int]]]
Held = Callable[[PodUID, ContainerName], Nodes]
"""Returns the devices of a container: resource, device, NUMA nodes."""


class ClaimDevice(Struct, frozen=True, gc=False):
    """A device that was prepared for a claim, and the CDI devices that the container runtime gets for it."""

    driver: str
    pool: str
    device: str
    cdi_devices: tuple[str, ...] = ()
    share_id: str | None = None


class DynamicResource(Struct, frozen=True):
    """The devices that a container has from a claim."""

    claim: str
    namespace: str
    devices: tuple[ClaimDevice, ...] = ()


Dynamic = Callable[[Pod, Container], Sequence[DynamicResource]]


def pod_resources(pod: Pod, held: Held, dynamic: Dynamic) -> v1.PodResources:
    sidecars = [container for container in pod.spec.init_containers if container.is_sidecar]
    containers = [
        v1.ContainerResources(
            name=container.name,
            devices=_devices(held(pod.uid, container.name)),
            dynamic_resources=[_claim(each) for each in dynamic(pod, container)],
        )
        for container in (*sidecars, *pod.spec.containers)
    ]
    return v1.PodResources(name=pod.name, namespace=pod.metadata.namespace, containers=containers)


def allocatable(devices: Mapping[ResourceName, Iterable[Device]]) -> v1.AllocatableResourcesResponse:
    nodes = {resource: {device.id: device.nodes for device in listed} for resource, listed in devices.items()}
    return v1.AllocatableResourcesResponse(devices=_devices(nodes))


def pod_resources_v1alpha1(pod: Pod, held: Held) -> v1alpha1.PodResources:
    """Return the message of the first version, which has neither topology nor sidecars: each device is listed once."""
    containers = [
        v1alpha1.ContainerResources(
            name=container.name,
            devices=[
                v1alpha1.ContainerDevices(resource_name=resource, device_ids=[device])
                for resource, devices in sorted(held(pod.uid, container.name).items())
                for device in sorted(devices)
            ],
        )
        for container in pod.spec.containers
    ]
    return v1alpha1.PodResources(name=pod.name, namespace=pod.metadata.namespace, containers=containers)


def _devices(nodes: Nodes) -> Iterator[v1.ContainerDevices]:
    for resource, devices in sorted(nodes.items()):
        for device in sorted(devices):
            for topology in _topologies(devices[device]):
                yield v1.ContainerDevices(resource_name=resource, device_ids=[device], topology=topology)


def _topologies(nodes: Sequence[int]) -> list[v1.TopologyInfo] | list[None]:
    near = sorted({node for node in nodes if node >= 0})
    return [v1.TopologyInfo(nodes=[v1.NUMANode(ID=node)]) for node in near] or [None]


def _claim(resource: DynamicResource) -> v1.DynamicResource:
    devices = [
        v1.ClaimResource(
            cdi_devices=[v1.CDIDevice(name=name) for name in device.cdi_devices],
            driver_name=device.driver,
            pool_name=device.pool,
            device_name=device.device,
            share_id=device.share_id,
        )
        for device in resource.devices
    ]
    return v1.DynamicResource(claim_name=resource.claim, claim_namespace=resource.namespace, claim_resources=devices)
