"""Kubernetes' DRA test driver, devlet, or both are killed in the middle of a call: before the driver has it, while the
driver works, and when it has answered and nobody has heard of it. Pods start and end all the same, and nothing stays
prepared."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.cluster.client import DeleteOptions
from devlet.cluster.store.store import open_store
from devlet.objects.kinds import BUILT_IN, PODS
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.peers.hooked_driver import AFTER, BEFORE, HookedDriver, Method
from tests.support.peers.peer_node import EXAMPLE, TEST, PeerNode, device

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

SETTINGS = "timeouts: {claimReconcile: 1s}\n"
RUNNING = "running"
VICTIMS = ["driver", "devlet", "driver devlet", "devlet driver"]
NOT_UNPREPARED = "FailedUnprepareDynamicResources"

stages = pytest.mark.parametrize("stage", [BEFORE, RUNNING, AFTER])
victims = pytest.mark.parametrize("victims", VICTIMS, ids=lambda victims: victims.replace(" ", " then "))


@dataclass
class Parts:
    node: PeerNode
    driver: Restarts[HookedDriver]

    @property
    def hooked(self) -> HookedDriver:
        return self.driver.running

    async def stop_at(self, method: Method, stage: str) -> None:
        """All calls from now on, until `go_on`."""
        await self.hooked.forget_calls()
        await (self.hooked.block(method) if stage == RUNNING else self.hooked.hold(method, stage))

    async def go_on(self, method: Method) -> None:
        for undo in (self.hooked.unblock, self.hooked.release, self.hooked.unfail):
            await undo(method)

    async def until_at(self, method: Method, stage: str) -> None:
        await until(partial(self.hooked.calls, method), lambda calls: bool(calls) and calls[-1].stage == stage)

    async def kill(self, victims: str) -> None:
        for victim in victims.split():
            await (self.node.kill() if victim == "devlet" else self.driver.kill())

    async def restart(self, victims: str) -> None:
        """devlet first: the driver does not start without an API."""
        for victim in sorted(victims.split()):
            await (self.node.start() if victim == "devlet" else self.driver.start())

    async def restart_devlet(self) -> None:
        await self.kill("devlet")
        await self.restart("devlet")

    async def claims(self) -> list[str]:
        """The UIDs of what the driver has prepared."""
        return [claim.uid for claim in await self.hooked.prepared()]


@pytest.fixture(scope="module")
async def running(peers: "Peers") -> AsyncIterator[Parts]:
    peers.need("dra-example-kubeletplugin", "kubelet-claims")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with (
        PeerNode(root, peers.binaries, SETTINGS) as node,
        node.example_driver(num_devices=2),
        node.test_driver() as driver,
    ):
        yield Parts(node, driver)
    shutil.rmtree(root)


@pytest.fixture
async def parts(running: Parts) -> AsyncIterator[Parts]:
    """Both drivers can be called; after the test nothing is prepared."""
    await running.node.until_up(EXAMPLE, TEST)
    await running.hooked.forget_calls()
    yield running
    for method in (Method.PREPARE, Method.UNPREPARE):
        await running.go_on(method)
    await running.node.leave_nothing(running.hooked)
    assert running.node.example_claims() == []


# Killed


@stages
@victims
async def test_a_pod_runs_whoever_was_killed_while_its_claim_was_prepared(
    parts: Parts, stage: str, victims: str
) -> None:
    node = parts.node
    await parts.stop_at(Method.PREPARE, stage)
    uid = await node.submit("train", device(TEST))
    await parts.until_at(Method.PREPARE, stage)
    await parts.kill(victims)
    await parts.restart(victims)
    if victims == "devlet":
        await node.until_up(TEST)
        await parts.go_on(Method.PREPARE)
    await node.until_phase("train", "Running")
    assert await node.environment("train") == {"claim_train_req": "true"}
    assert (await parts.claims(), node.specs()) == ([uid], {f"{TEST}-{uid}-req.json"})


@stages
@victims
async def test_a_pod_goes_whoever_was_killed_while_its_claim_was_unprepared(
    parts: Parts, stage: str, victims: str
) -> None:
    node = parts.node
    uid = await node.run("train", device(TEST))
    await parts.stop_at(Method.UNPREPARE, stage)
    await node.ask_to_delete("train")
    await parts.until_at(Method.UNPREPARE, stage)
    await parts.kill(victims)
    await parts.restart(victims)
    if victims == "devlet":
        await node.until_up(TEST)
        await parts.go_on(Method.UNPREPARE)
    await node.until_gone("train")
    await node.until_forgotten("train")
    assert await parts.claims() == []
    if "driver" in victims and stage != AFTER:  # the new one does not know of it
        (node.root / "cdi" / f"{TEST}-{uid}-req.json").unlink()
    assert node.specs() == set()


@stages
async def test_a_pod_that_is_deleted_after_its_prepare_was_interrupted_leaves_nothing(parts: Parts, stage: str) -> None:
    await parts.stop_at(Method.PREPARE, stage)
    await parts.node.submit("train", device(TEST))
    await parts.until_at(Method.PREPARE, stage)
    await parts.restart_devlet()
    await parts.node.ask_to_delete("train")
    await parts.go_on(Method.PREPARE)
    await parts.node.until_gone("train")
    await parts.node.until_forgotten("train")
    assert (await parts.claims(), parts.node.specs()) == ([], set())


@pytest.mark.spec("DN-9.2.13")
@stages
async def test_a_claim_is_not_prepared_again_for_a_pod_that_went_while_devlet_was_down(
    parts: Parts, stage: str
) -> None:
    node = parts.node
    await parts.stop_at(Method.PREPARE, stage)
    await node.submit("train", device(TEST))
    await parts.until_at(Method.PREPARE, stage)
    await parts.kill("devlet")
    async with open_store(node.root / "cluster.db", kinds=BUILT_IN) as store:
        await store.delete(PODS, "train", "default", DeleteOptions(grace_period=0))
    await parts.restart("devlet")
    await parts.go_on(Method.PREPARE)
    await node.until_forgotten("train")
    assert len(await parts.hooked.calls(Method.PREPARE)) == 1
    assert (await parts.claims(), node.specs()) == ([], set())


# Two drivers


@pytest.mark.spec("DN-9.2.22")
async def test_devlet_is_restarted_while_one_of_two_drivers_prepares(parts: Parts) -> None:
    await parts.stop_at(Method.PREPARE, RUNNING)
    uid = await parts.node.submit("train", device(TEST, "", "a"), device(EXAMPLE, "", "b"))
    await parts.until_at(Method.PREPARE, RUNNING)
    await parts.restart_devlet()
    await parts.go_on(Method.PREPARE)
    await parts.node.until_phase("train", "Running")
    assert {"claim_train_a", "GPU_DEVICE_0"} <= (await parts.node.environment("train")).keys()
    assert await parts.claims() == [uid] == parts.node.example_claims()


@pytest.mark.spec("DN-9.2.23")
async def test_devlet_is_restarted_while_one_of_two_drivers_unprepares(parts: Parts) -> None:
    await parts.node.run("train", device(TEST, "", "a"), device(EXAMPLE, "", "b"))
    await parts.stop_at(Method.UNPREPARE, RUNNING)
    await parts.node.finish("train")
    await parts.until_at(Method.UNPREPARE, RUNNING)
    await parts.restart_devlet()
    await until(partial(parts.hooked.calls, Method.UNPREPARE), lambda calls: len(calls) == 2)
    await parts.go_on(Method.UNPREPARE)
    await parts.node.until_phase("train", "Succeeded")
    assert (await parts.claims(), parts.node.example_claims(), parts.node.specs()) == ([], [], set())


# Failures instead of deaths, and restarts between them


@pytest.mark.spec("DN-9.2.07")
@pytest.mark.spec("DN-9.2.09")
@pytest.mark.parametrize("restarted", [False, True], ids=["devlet runs", "devlet is restarted"])
async def test_a_pod_succeeds_when_prepare_works_again(parts: Parts, restarted: bool) -> None:
    await parts.hooked.fail(Method.PREPARE)
    await parts.node.submit("train", device(TEST))
    await parts.node.until_failed("train", "simulated ")
    if restarted:
        await parts.restart_devlet()
        await until(partial(parts.hooked.calls, Method.PREPARE), lambda calls: len(calls) > 1)
    await parts.hooked.unfail(Method.PREPARE)
    await parts.node.until_phase("train", "Running")
    await parts.node.finish("train")
    await parts.node.until_phase("train", "Succeeded")


@pytest.mark.spec("DN-9.2.08")
@pytest.mark.spec("DN-9.2.10")
@pytest.mark.parametrize("restarted", [False, True], ids=["devlet runs", "devlet is restarted"])
async def test_a_pod_has_succeeded_when_unprepare_works_again(parts: Parts, restarted: bool) -> None:
    await parts.node.run("train", device(TEST))
    await parts.hooked.fail(Method.UNPREPARE)
    await parts.node.finish("train")
    await parts.node.until_failed("train", "simulated ", NOT_UNPREPARED)
    if restarted:
        await parts.restart_devlet()
        await parts.hooked.forget_calls()
        await until(partial(parts.hooked.calls, Method.UNPREPARE))
    assert (await parts.node.pods())["train"]["status"]["phase"] == "Running"
    await parts.hooked.unfail(Method.UNPREPARE)
    await parts.node.until_phase("train", "Succeeded")
    assert (await parts.claims(), parts.node.specs()) == ([], set())


@pytest.mark.spec("DN-9.2.11")
@pytest.mark.spec("DN-9.2.12")
@pytest.mark.spec("DN-9.3.04")
@pytest.mark.parametrize("force", [False, True], ids=["in good order", "by force"])
@pytest.mark.parametrize("restarted", [False, True], ids=["devlet runs", "devlet is restarted"])
async def test_the_claim_of_a_deleted_pod_is_unprepared_in_the_end(parts: Parts, restarted: bool, force: bool) -> None:
    await parts.node.run("train", device(TEST))
    await parts.hooked.fail(Method.UNPREPARE)
    await parts.node.ask_to_delete("train", force=force)
    await until(partial(parts.hooked.calls, Method.UNPREPARE))
    if restarted:
        await parts.restart_devlet()
        await parts.hooked.forget_calls()
        await until(partial(parts.hooked.calls, Method.UNPREPARE))
    assert ("train" in await parts.node.pods()) is not force
    assert len(await parts.claims()) == 1
    await parts.hooked.unfail(Method.UNPREPARE)
    await parts.node.until_gone("train")
    await parts.node.until_forgotten("train")
    assert (await parts.claims(), parts.node.specs()) == ([], set())
