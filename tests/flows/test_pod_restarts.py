"""devlet is killed at each stage of a pod's life, and continues where it was. What happens during a call to a driver is
in test_claim_restarts."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.cluster.store.store import open_store
from devlet.errors import Unavailable
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver
from devlet.testing.node_process import NODE, NodeProcess, devices_in_status, plugin_process, pod
from devlet.testing.waiting import until
from tests.support.claim_node import ClaimNode, claim_pod, given, on_node

pytestmark = [pytest.mark.anyio, pytest.mark.long]

GPU = "vendor.com/gpu"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@pytest.fixture
async def node(claim_node: ClaimNode) -> AsyncIterator[ClaimNode]:
    """A node that runs, even if an earlier test killed it."""
    try:
        await claim_node.pods()
    except Unavailable:
        await claim_node.start()
    yield claim_node


async def restart(node: NodeProcess) -> None:
    await node.kill()
    await node.start()


def started(document: Document) -> str:
    found: str = document["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    return found


@pytest.mark.spec("KA-9.3u")
async def test_a_pod_that_waits_for_its_claim_still_waits_and_then_runs(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await node.add_claim("train")
    await node.create(on_node(claim_pod("train", "train")))
    await node.until_failed("train", "train")
    await restart(node)
    await node.until_pod("train", lambda found: found["status"]["phase"] == "Pending")
    assert gpu.asked(PREPARE) == []
    await node.allocate("train", given(gpu.name))
    await node.reserve("train", await node.pod("train") or {})
    await node.until_phase("train", "Running")
    assert len(gpu.asked(PREPARE)) == 1


@pytest.mark.spec("KA-9.3v")
async def test_a_running_pod_keeps_running_and_nothing_is_prepared_again(node: ClaimNode, gpu: FakeDraDriver) -> None:
    before = await node.run_pod("train", gpu.name)
    await restart(node)
    await gpu.until_registered(2)
    after = await node.until_phase("train", "Running")
    assert started(after) == started(before)
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    await node.delete("train")
    assert len(gpu.asked(PREPARE)) == 1 and not gpu.prepared


@pytest.mark.spec("KA-9.3w")
async def test_a_pod_that_was_deleted_while_devlet_was_down_is_unprepared_and_removed(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name)
    await node.kill()
    async with open_store(node.root / "cluster.db") as store:
        await store.delete(PODS, "train", "default")
        assert (await store.get(PODS, "train", "default"))["metadata"]["deletionTimestamp"]
    assert gpu.prepared
    await node.start()
    await node.until_gone("train")
    await node.until_forgotten("train")
    assert not gpu.prepared and len(gpu.asked(PREPARE)) == 1


@pytest.mark.spec("KA-9.3x")
async def test_a_deleted_pod_stays_over_restarts_until_its_slow_driver_has_unprepared(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name)
    gpu.hang(UNPREPARE)
    await node.ask_to_delete("train")
    for times in (1, 2):
        await gpu.until_asked(UNPREPARE, times)
        found = await node.pod("train")
        assert found is not None and found["status"]["phase"] == "Running"
        await restart(node)
    await gpu.until_asked(UNPREPARE, 3)
    assert await node.pod("train") is not None and gpu.prepared
    gpu.recover()
    await node.until_gone("train")
    assert not gpu.prepared


async def test_a_pod_that_has_ended_and_was_then_deleted_while_devlet_was_down_is_removed(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name)
    await node.finish("train", 1)
    await node.until_phase("train", "Failed")
    await node.kill()
    async with open_store(node.root / "cluster.db") as store:
        await store.delete(PODS, "train", "default")
    await node.start()
    await node.until_gone("train")
    assert len(gpu.asked(PREPARE)) == 1


async def test_the_uid_of_a_node_and_its_lease_are_kept_and_the_lease_is_renewed_at_the_start(node: ClaimNode) -> None:
    async def lease() -> Document:
        found = {each["metadata"]["name"]: each for each in await node.items(LEASES)}
        return found.get(NODE, {})

    before = await until(lease)
    registered = await node.call("GET", f"/api/v1/nodes/{NODE}")
    await restart(node)
    after = await until(lease, lambda found: found["spec"]["renewTime"] > before["spec"]["renewTime"])
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    ready = {each["type"]: each for each in registered["status"]["conditions"]}["Ready"]
    now = {each["type"]: each for each in (await node.call("GET", f"/api/v1/nodes/{NODE}"))["status"]["conditions"]}[
        "Ready"
    ]
    assert (now["status"], now["lastTransitionTime"]) == ("True", ready["lastTransitionTime"])


@pytest.mark.spec("KA-9.3y")
async def test_a_static_pod_keeps_its_device_and_a_changed_one_gets_it(root: Path) -> None:
    folder = root / "static"
    folder.mkdir()
    document = pod("web", {GPU: 1})
    del document["spec"]["nodeName"]
    (folder / "web.json").write_text(json.dumps(document))
    name = f"web-{NODE}"
    async with NodeProcess(root, f"staticPodPath: {folder}\n") as node, plugin_process(node, GPU, 1):
        before = await node.until_phase(name, "Running")
        assert devices_in_status(before)[GPU].keys() == {"dev-0"}
        await restart(node)
        await node.until_healthy(GPU, 1)
        after = await node.until_phase(name, "Running")
        assert started(after) == started(before) and after["metadata"]["uid"] == before["metadata"]["uid"]
        await node.kill()
        document["spec"]["containers"][0]["image"] = "y"
        (folder / "web.json").write_text(json.dumps(document))
        await node.start()
        new = await node.until_pod(
            name, lambda found: found["spec"]["containers"][0]["image"] == "y" and bool(devices_in_status(found))
        )
        assert devices_in_status(new)[GPU].keys() == {"dev-0"}
        (folder / "web.json").unlink()
        await until(node.pods, lambda found: not found)
        assert await node.held() == {}
