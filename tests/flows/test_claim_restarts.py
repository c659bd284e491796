"""DRA drivers and claims on a whole node, a real process: the node or a driver is restarted in the middle of
everything."""

from collections.abc import AsyncIterator

import pytest

from devlet.cluster.client import DeleteOptions
from devlet.cluster.store.store import open_store
from devlet.errors import Unavailable
from devlet.objects.kinds import PODS
from devlet.testing.fake_dra_cluster import slice_of
from devlet.testing.fake_dra_driver import GET_INFO, NOTIFY, PREPARE, UNPREPARE, FakeDraDriver
from devlet.testing.node_process import NODE
from devlet.testing.node_process import PODS as POD_PATH
from devlet.testing.waiting import until
from tests.support.claim_node import SLICES, ClaimNode, claim_pod, given

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CONFIGURATION = """
timeouts:
  draCall: 1s
  sliceWipeDelay: 2s
  claimReconcile: 1s
"""


@pytest.fixture
async def node(claim_node: ClaimNode) -> AsyncIterator[ClaimNode]:
    """A node that runs, even if an earlier test killed it."""
    try:
        await claim_node.pods()
    except Unavailable:
        await claim_node.start()
    yield claim_node


async def restart(node: ClaimNode) -> None:
    await node.kill()
    await node.start()


# Registration


@pytest.mark.spec("DN-9.2.01")
async def test_a_driver_that_stays_is_registered_again_after_a_restart(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await restart(node)
    await gpu.until_registered(2)
    await node.run_pod("train", gpu.name)
    assert gpu.statuses == [(True, "")] * 2


@pytest.mark.spec("DN-9.2.02")
async def test_a_driver_that_stops_and_starts_is_registered_again(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await gpu.stop()
    await node.until_missing(gpu)
    await gpu.start()
    await gpu.until_registered(2)
    await node.run_pod("train", gpu.name)


@pytest.mark.spec("DN-9.2.03")
@pytest.mark.spec("DN-9.2.04")
@pytest.mark.parametrize("method", [GET_INFO, NOTIFY])
async def test_registration_is_retried_for_a_driver_that_fails_after_a_restart(
    node: ClaimNode, gpu: FakeDraDriver, method: str
) -> None:
    gpu.fail(method)
    await restart(node)
    await gpu.until_asked(method, 2)
    await node.until_missing(gpu)
    assert gpu.statuses == [(True, "")]
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    await node.until_failed("train", f"DRA driver {gpu.name} is not registered")
    gpu.recover()
    await gpu.until_registered(2)
    await node.until_phase("train", "Running")


# Prepare


@pytest.mark.spec("DN-9.2.05")
async def test_a_pod_that_was_bound_while_devlet_was_down_runs_after_its_start(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.add_claim("train", given(gpu.name))
    document = await node.call("POST", POD_PATH, claim_pod("train", "train", restart="Never", exit_code=0))
    await node.reserve("train", document)
    await node.stop()
    async with open_store(node.root / "cluster.db") as store:
        binding = {"metadata": {"name": "train"}, "target": {"name": NODE}}
        await store.create(PODS, binding, "default", name="train", subresource="binding")
        bound = await store.get(PODS, "train", "default")
    assert (bound["spec"]["nodeName"], bound["status"]["phase"]) == (NODE, "Pending")
    await node.start()
    await node.until_phase("train", "Succeeded")


@pytest.mark.spec("DN-9.2.09")
async def test_a_prepare_that_failed_before_a_restart_works_after_it(node: ClaimNode, gpu: FakeDraDriver) -> None:
    gpu.fail(PREPARE)
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train", restart="Never", exit_code=0))
    await node.until_failed("train", "told to fail")
    await node.kill()
    gpu.recover()
    await node.start()
    await node.until_phase("train", "Succeeded")


@pytest.mark.spec("DN-9.2.13")
async def test_a_pod_that_was_deleted_during_an_interrupted_prepare_is_only_unprepared(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    gpu.hang(PREPARE, after=True)
    uid = await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    await gpu.until_asked(PREPARE)
    assert node.claim_checkpoint().keys() == {"train"}
    await node.kill()
    async with open_store(node.root / "cluster.db") as store:
        await store.delete(PODS, "train", "default", DeleteOptions(0))
    assert list(gpu.prepared) == [uid]
    gpu.recover()
    await node.start()
    await node.until_forgotten("train")
    assert len(gpu.asked(PREPARE)) == 1
    assert [call.claims[0].uid for call in gpu.asked(UNPREPARE)] == [uid]
    assert not gpu.prepared


@pytest.mark.spec("DN-9.2.22")
async def test_a_restart_while_one_driver_does_not_answer_prepare(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver
) -> None:
    gpu.hang(PREPARE)
    await node.add_claim("train", given(gpu.name), given(nic.name))
    await node.add_pod(claim_pod("train", "train", restart="Never"))
    await gpu.until_asked(PREPARE)
    await nic.until_asked(PREPARE)
    await restart(node)
    await gpu.until_asked(PREPARE, 2)
    gpu.recover()
    await node.until_phase("train", "Running")
    assert len(gpu.prepared) == len(nic.prepared) == 1


# Unprepare


@pytest.mark.spec("DN-9.2.10")
async def test_an_unprepare_that_failed_before_a_restart_is_repeated_after_it(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name)
    gpu.fail(UNPREPARE)
    await node.finish("train")
    await gpu.until_asked(UNPREPARE)
    await node.kill()
    before = len(gpu.asked(UNPREPARE))
    gpu.recover()
    await node.start()
    await node.until_phase("train", "Succeeded")
    assert len(gpu.asked(UNPREPARE)) > before
    assert len(gpu.asked(PREPARE)) == 1


@pytest.mark.spec("DN-9.2.12")
async def test_the_claim_of_a_pod_that_was_deleted_by_force_is_unprepared_after_a_restart(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name)
    gpu.fail(UNPREPARE)
    await node.ask_to_delete("train", force=True)
    await gpu.until_asked(UNPREPARE)
    await node.kill()
    before = len(gpu.asked(UNPREPARE))
    await node.start()
    await gpu.until_asked(UNPREPARE, before + 1)
    assert node.claim_checkpoint().keys() == {"train"}
    gpu.recover()
    await node.until_forgotten("train")
    assert not gpu.prepared


@pytest.mark.spec("DN-9.2.23")
async def test_a_restart_while_one_driver_does_not_answer_unprepare(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name, nic.name)
    gpu.hang(UNPREPARE)
    await node.finish("train")
    await gpu.until_asked(UNPREPARE)
    await nic.until_asked(UNPREPARE)
    await restart(node)
    await gpu.until_asked(UNPREPARE, 2)
    gpu.recover()
    await node.until_phase("train", "Succeeded")
    await node.until_forgotten("train")


# Slices


@pytest.mark.spec("DN-9.2.24")
async def test_after_a_start_only_slices_of_missing_drivers_on_this_node_are_deleted(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    kept = {f"{NODE}-{gpu.name}", "elsewhere-gone.example.com"}
    for slice_ in (
        slice_of(gpu.name, NODE, 2),
        slice_of("gone.example.com", NODE, 2),
        slice_of("gone.example.com", "elsewhere", 2),
    ):
        await node.call("POST", SLICES, slice_)
    before = await node.slices()
    await restart(node)
    after = await until(node.slices, lambda found: found.keys() == kept)
    assert after == {name: before[name] for name in kept}
