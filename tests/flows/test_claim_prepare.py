"""Claims on a whole node whose drivers fail, hang and recover while claims are prepared and unprepared."""

from typing import Any

import pytest

from devlet.testing.claim_node import CLAIMS, ClaimNode, claim_pod, given, on_node
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver, PreparedDevice, Service
from devlet.testing.node_process import EVENTS
from devlet.testing.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

NOT_UNPREPARED = "FailedUnprepareDynamicResources"


async def phase(node: ClaimNode, name: str) -> str:
    document = await node.pod(name)
    return "gone" if document is None else str(document["status"]["phase"])


# Prepare


@pytest.mark.spec("DN-9.2.06")
async def test_a_pod_is_pending_while_prepare_hangs_beyond_its_time(node: ClaimNode, gpu: FakeDraDriver) -> None:
    gpu.hang(PREPARE)
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    assert "no answer within 1 s" in await node.until_failed("train", gpu.name)
    await gpu.until_asked(PREPARE, 2)
    assert await phase(node, "train") == "Pending"
    gpu.recover()
    await node.until_phase("train", "Running")


@pytest.mark.spec("DN-9.2.07")
async def test_a_pod_whose_prepare_failed_runs_when_it_works(node: ClaimNode, gpu: FakeDraDriver) -> None:
    gpu.fail(PREPARE, "INTERNAL", "out of order")
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train", restart="Never", exit_code="0"))
    text = await node.until_failed("train", "out of order")
    assert text.startswith("Failed to prepare dynamic resources: claim train: driver gpu.example.com: ")
    assert await phase(node, "train") == "Pending"
    gpu.recover()
    await node.until_phase("train", "Succeeded")


@pytest.mark.spec("DN-9.3.02")
@pytest.mark.parametrize("service", [Service.V1, Service.V1BETA1])
async def test_prepare_is_called_again_in_each_version_of_the_api(
    node: ClaimNode, drivers: Any, service: Service
) -> None:
    gpu = await drivers.start("gpu", services=(service,))
    gpu.fail(PREPARE, times=2)
    await node.run_pod("train", gpu.name)
    assert [call.service for call in gpu.asked(PREPARE)] == [service] * 3
