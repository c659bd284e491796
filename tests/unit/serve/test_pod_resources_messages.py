import pytest

from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec
from devlet.plugins.devices import Device
from devlet.serve.pod_resources_messages import (
    ClaimDevice,
    DynamicResource,
    Nodes,
    allocatable,
    pod_resources,
    pod_resources_v1alpha1,
)

GPU, NIC = ResourceName("a.com/gpu"), ResourceName("a.com/nic")


def container(name: str, restart_policy: str | None = None) -> Container:
    return Container(name=ContainerName(name), restart_policy=restart_policy)


POD = Pod(
    metadata=ObjectMeta(name="train", namespace="ns", uid="u1"),
    spec=PodSpec(
        init_containers=(container("init"), container("side", "Always")),
        containers=(container("main"), container("idle")),
    ),
)


def no_claims(pod: Pod, container: Container) -> tuple[DynamicResource, ...]:
    return ()


def gpus(pod: PodUID, container: ContainerName) -> Nodes:
    assert pod == "u1"
    if container != "main":
        return {}
    return {
        NIC: {DeviceID("n0"): ()},
        GPU: {DeviceID("g1"): (1, 0), DeviceID("g0"): (0,)},
    }


@pytest.mark.spec("DP-8.73")
def test_sidecars_come_first_and_other_init_containers_are_not_listed() -> None:
    shown = pod_resources(POD, gpus, no_claims)
    assert (shown.name, shown.namespace) == ("train", "ns")
    assert [each.name for each in shown.containers] == ["side", "main", "idle"]


@pytest.mark.spec("DP-9.28")
def test_devices_are_listed_once_per_numa_node_and_always_in_the_same_order() -> None:
    main = pod_resources(POD, gpus, no_claims).containers[1]
    shown = [(d.resource_name, list(d.device_ids), [node.ID for node in d.topology.nodes]) for d in main.devices]
    assert shown == [
        ("a.com/gpu", ["g0"], [0]),
        ("a.com/gpu", ["g1"], [0]),
        ("a.com/gpu", ["g1"], [1]),
        ("a.com/nic", ["n0"], []),
    ]
    assert [device.HasField("topology") for device in main.devices] == [True, True, True, False]


def test_a_device_without_topology_is_allocatable() -> None:
    devices = {GPU: (Device(DeviceID("g1"), nodes=(0,)), Device(DeviceID("g0"))), NIC: ()}
    shown = allocatable(devices)
    assert [(list(d.device_ids), d.HasField("topology")) for d in shown.devices] == [(["g0"], False), (["g1"], True)]
    assert not shown.cpu_ids and not shown.memory


@pytest.mark.spec("DP-9.28")
def test_each_device_of_a_claim_shows_its_own_cdi_devices_only() -> None:
    def claims(pod: Pod, container: Container) -> list[DynamicResource]:
        if container.name != "main":
            return []
        first = ClaimDevice("d.com", "pool", "gpu-0", ("d.com/gpu=0",))
        second = ClaimDevice("d.com", "pool", "gpu-1", ("d.com/gpu=1", "d.com/gpu=all"), share_id="s1")
        return [DynamicResource("claim", "ns", (first, second))]

    [claim] = pod_resources(POD, gpus, claims).containers[1].dynamic_resources
    assert (claim.claim_name, claim.claim_namespace) == ("claim", "ns")
    first, second = claim.claim_resources
    assert (first.driver_name, first.pool_name, first.device_name) == ("d.com", "pool", "gpu-0")
    assert [device.name for device in first.cdi_devices] == ["d.com/gpu=0"]
    assert [device.name for device in second.cdi_devices] == ["d.com/gpu=1", "d.com/gpu=all"]
    assert (first.HasField("share_id"), second.share_id) == (False, "s1")


def test_the_first_version_lists_regular_containers_and_every_device_once() -> None:
    shown = pod_resources_v1alpha1(POD, gpus)
    assert [each.name for each in shown.containers] == ["main", "idle"]
    devices = [(d.resource_name, list(d.device_ids)) for d in shown.containers[0].devices]
    assert devices == [("a.com/gpu", ["g0"]), ("a.com/gpu", ["g1"]), ("a.com/nic", ["n0"])]
