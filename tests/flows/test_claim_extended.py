"""Extended resources of pods that are devices of a claim: what containers get of it on a whole node."""

from collections.abc import Mapping, Sequence

import pytest

from devlet.objects.documents import Document
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver, PreparedDevice
from devlet.testing.node_process import devices_in_status
from devlet.testing.waiting import until
from tests.support.claim_node import ClaimNode, claim_pod, given

pytestmark = [pytest.mark.anyio]

GPU = "example.com/gpu"
NIC = "example.com/nic"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"

Wanted = Sequence[Mapping[str, int]]  # what each container has of each resource


def extended_pod(name: str, wanted: Wanted, **annotations: str) -> Document:
    document = claim_pod(name, restart="Never", **annotations)
    document["spec"]["containers"] = [
        {"name": f"c{i}", "image": "x", "resources": {"limits": {resource: str(n) for resource, n in limits.items()}}}
        for i, limits in enumerate(wanted)
    ]
    return document


def mappings(wanted: Wanted) -> list[Document]:
    """As the scheduler writes them."""
    return [
        {"containerName": f"c{i}", "resourceName": resource, "requestName": f"container-{i}-request-{j}"}
        for i, limits in enumerate(wanted)
        for j, resource in enumerate(limits)
    ]


async def add(node: ClaimNode, gpu: FakeDraDriver, name: str, wanted: Wanted, **annotations: str) -> Document:
    """A pod with these resources, the claim behind them, and what its status says of that."""
    claim = f"{name}-extended-resources"
    each = mappings(wanted)
    amounts = [n for limits in wanted for n in limits.values()]
    given_out = [(one["requestName"], f"dev-{i}-{j}") for i, one in enumerate(each) for j in range(amounts[i])]
    gpu.set_devices(claim, [PreparedDevice("pool", device, requests=(request,)) for request, device in given_out])
    await node.add_claim(claim, *(given(gpu.name, device, request) for request, device in given_out))
    status = {"resourceClaimName": claim, "requestMappings": each}
    await node.add_pod(extended_pod(name, wanted, **annotations), extended=status)
    return status


async def requests(node: ClaimNode, pod: str) -> list[set[str]]:
    """Of each container, as they show in its environment."""
    found = await node.containers(pod)
    prefix = f"CLAIM_{pod}_extended_resources_"
    environments = [await node.environment(pod, name) for name in sorted(found)]
    return [{key.removeprefix(prefix) for key in each if key.startswith(prefix)} for each in environments]


CASES: dict[str, Wanted] = {
    "a name of its own": [{GPU: 1}],
    "the name of the class": [{IMPLICIT: 1}],
    "both in one container": [{GPU: 1, IMPLICIT: 1}],
    "one container with three": [{GPU: 1, NIC: 1, IMPLICIT: 1}],
    "three containers with one each": [{GPU: 1}, {NIC: 1}, {IMPLICIT: 1}],
    "three containers with several": [{GPU: 2, NIC: 1}, {NIC: 2, IMPLICIT: 1}, {GPU: 1, NIC: 1}],
}


@pytest.mark.spec("DN-9.3.31")
@pytest.mark.spec("DN-9.3.36")
@pytest.mark.parametrize("case", CASES)
async def test_each_container_gets_the_devices_behind_its_resources(
    node: ClaimNode, gpu: FakeDraDriver, case: str
) -> None:
    wanted = CASES[case]
    status = await add(node, gpu, "train", wanted)
    document = await node.until_phase("train", "Running")
    expected = [{f"container_{i}_request_{j}" for j in range(len(limits))} for i, limits in enumerate(wanted)]
    assert await requests(node, "train") == expected
    assert document["status"]["extendedResourceClaimStatus"] == status
    shown = [len(each) for each in devices_in_status(document).values()]
    assert shown == list(wanted[0].values())
    assert len(gpu.asked(PREPARE)) == 1


@pytest.mark.spec("DN-9.3.32")
@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (1, "Failed")])
async def test_the_claim_is_unprepared_when_the_pod_has_ended(
    node: ClaimNode, gpu: FakeDraDriver, code: int, phase: str
) -> None:
    await add(node, gpu, "train", [{GPU: 1}], exit_code=str(code))
    await node.until_phase("train", phase)
    assert [call.method for call in gpu.calls if call.claims] == [PREPARE, UNPREPARE]
    await node.until_forgotten("train-extended-resources")


@pytest.mark.spec("DN-9.3.33")
async def test_a_resource_may_be_of_a_claim_after_its_device_plugin_is_gone(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    async with FakeDevicePlugin(node.plugins, GPU, 2, follow=True):
        await node.until_healthy(GPU, 2)

    await until(node.plugin_states, lambda states: states["example.com:gpu"]["state"] != "Connected")
    await add(node, gpu, "train", [{GPU: 1}])
    await node.until_phase("train", "Running")
    assert await node.held() == {}
    assert await requests(node, "train") == [{"container_0_request_0"}]


@pytest.mark.spec("DN-9.3.34")
async def test_all_ten_devices_are_free_for_the_next_pod_when_the_first_has_ended(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    for name in ("first", "second"):
        await add(node, gpu, name, [{GPU: 10}])
        document = await node.until_phase(name, "Running")
        assert [len(each) for each in devices_in_status(document).values()] == [10]
        [claim] = gpu.prepared.values()
        assert (claim.claim.name, len(claim.devices)) == (f"{name}-extended-resources", 10)
        await node.finish(name)
        await node.until_phase(name, "Succeeded")
        assert not gpu.prepared


@pytest.mark.spec("DN-9.3.35")
async def test_none_of_a_resource_needs_no_claim(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await node.add_pod(extended_pod("train", [{GPU: 0}]))
    document = await node.until_phase("train", "Running")
    assert "extendedResourceClaimStatus" not in document["status"]
    assert gpu.asked(PREPARE) == []
