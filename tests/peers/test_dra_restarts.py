"""devlet, unmodified DRA drivers, or all of them are killed and started again while nothing happens: pods that run go
on with what they have, new ones start, and all of it can be undone."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from devlet.cluster.client import DeleteOptions
from devlet.cluster.store.store import Store, open_store
from devlet.kit.processes import RunningProcess
from devlet.objects.documents import Document
from devlet.objects.kinds import BUILT_IN, PODS, RESOURCE_CLAIMS
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.claim_node import claim_pod
from tests.support.peers.hooked_driver import HookedDriver, Method
from tests.support.peers.peer_node import EXAMPLE, TEST, PeerNode, device

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

SETTINGS = "timeouts: {claimReconcile: 1s}\n"


@dataclass
class Parts:
    """What can be killed and started: `devlet`, and both of its `drivers`."""

    node: PeerNode
    example: Restarts[RunningProcess]
    hooked: Restarts[HookedDriver]

    async def do(self, step: str) -> None:
        """`kill devlet`, or the like."""
        match step.split():
            case ["start", "all"]:
                await self._start_drivers_first()
            case [what, whom]:
                for each in (self.node,) if whom == "devlet" else (self.example, self.hooked):
                    await (each.kill() if what == "kill" else each.start())

    async def _start_drivers_first(self) -> None:
        """They are not ready without an API; devlet is started once they listen."""
        async with anyio.create_task_group() as tasks:
            for driver in (self.example, self.hooked):
                tasks.start_soon(driver.start)
            for name in (EXAMPLE, TEST):
                await until(partial(listens, self.node.root / "plugins" / name / "dra.sock"))
            await self.node.start()

    async def up(self) -> None:
        await self.node.until_up(EXAMPLE, TEST)

    async def look(self, pod: str) -> tuple[Document, Document, Document]:
        """What its container has, since when it runs, and what of it is prepared."""
        found = await self.node.until_phase(pod, "Running")
        prepared = (await self.node.prepared())[pod]
        prepared.pop("since", None)  # not known after a restart
        return await self.node.containers(pod), found["status"]["containerStatuses"][0], prepared


async def listens(path: Path) -> bool:
    try:
        async with await anyio.connect_unix(path):
            return True
    except OSError:
        return False


@pytest.fixture(scope="module")
async def running(peers: "Peers") -> AsyncIterator[Parts]:
    peers.need("dra-example-kubeletplugin", "kubelet-claims")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with (
        PeerNode(root, peers.binaries, SETTINGS) as node,
        node.example_driver(num_devices=2) as example,
        node.test_driver() as hooked,
    ):
        yield Parts(node, example, hooked)
    shutil.rmtree(root)


@pytest.fixture
async def parts(running: Parts) -> AsyncIterator[Parts]:
    """All up; after the test nothing is prepared."""
    await running.up()
    yield running
    await running.up()
    await running.node.leave_nothing(running.hooked.running)
    assert running.node.example_claims() == []


@asynccontextmanager
async def offline(node: PeerNode) -> AsyncIterator[Store]:
    """The cluster's objects, while devlet does not run."""
    async with open_store(node.root / "cluster.db", kinds=BUILT_IN) as store:
        yield store


ORDERS = [
    "kill drivers, start drivers",
    "kill devlet, start devlet",
    "kill drivers, kill devlet, start devlet, start drivers",
    "kill devlet, kill drivers, start devlet, start drivers",
    "kill drivers, kill devlet, start all",
    "kill devlet, kill drivers, start all",
    "kill devlet, kill drivers, start devlet, kill devlet, start all, kill drivers, start drivers",
]


@pytest.mark.parametrize("steps", ORDERS)
async def test_pods_keep_what_they_have_and_new_ones_start(parts: Parts, steps: str) -> None:
    node = parts.node
    uid = await node.run("keeps", device(EXAMPLE, "gpu-0", "a"), device(TEST, "device-00", "b"))
    before = await parts.look("keeps")
    orphan = f"{TEST}-{uid}-b.json"
    for step in steps.split(", "):
        await parts.do(step)
    await parts.up()
    assert await parts.look("keeps") == before
    assert orphan in node.specs() and node.example_claims() == [uid]
    await node.run("new", device(EXAMPLE, "gpu-1", "a"), device(TEST, "device-01", "b"))
    await node.delete("new", "keeps")
    if "kill drivers" in steps:  # this driver does not know of it any more
        (node.root / "cdi" / orphan).unlink()
    assert node.specs() == set()


@pytest.mark.spec("DN-9.2.01")
async def test_a_driver_that_keeps_running_is_told_again_that_it_is_registered(parts: Parts) -> None:
    driver = parts.hooked.running
    await driver.forget_calls()
    await parts.do("kill devlet")
    await parts.do("start devlet")
    calls = await until(lambda: driver.calls(Method.NOTIFY), lambda calls: bool(calls) and calls[-1].stage == "done")
    assert [call.request for call in calls] == [{"plugin_registered": True}]


@pytest.mark.spec("DN-9.2.02")
async def test_a_driver_that_stops_and_starts_is_registered_again(parts: Parts) -> None:
    await parts.hooked.stop()
    await until(parts.node.driver_states, lambda found: found.get(TEST, {}).get("state") != "Connected")
    await parts.hooked.start()
    await until(parts.hooked.running.is_registered)


@pytest.mark.spec("DN-9.2.03")
@pytest.mark.spec("DN-9.2.04")
@pytest.mark.parametrize("method", [Method.GET_INFO, Method.NOTIFY])
async def test_a_driver_whose_registration_fails_is_registered_when_it_works(parts: Parts, method: Method) -> None:
    driver = parts.hooked.running
    await parts.do("kill devlet")
    await driver.fail(method)
    await driver.forget_calls()
    await parts.do("start devlet")
    await until(lambda: driver.calls(method), lambda calls: len(calls) > 1)
    assert (await parts.node.driver_states()).get(TEST, {}).get("state") != "Connected"
    await parts.node.submit("train", device(TEST))
    await parts.node.until_failed("train", f"DRA driver {TEST} is not registered")
    await driver.unfail(method)
    await parts.node.until_phase("train", "Running")


@pytest.mark.parametrize("victim", ["devlet", "drivers"])
@pytest.mark.parametrize("method", [Method.GET_INFO, Method.NOTIFY])
async def test_a_registration_may_be_interrupted_at_any_time(parts: Parts, method: Method, victim: str) -> None:
    await parts.do("kill devlet")
    driver = parts.hooked.running
    await driver.forget_calls()
    await driver.hold(method)
    await parts.do("start devlet")
    await until(lambda: driver.calls(method))
    await parts.do(f"kill {victim}")
    if victim == "devlet":
        await driver.release(method)
    await parts.do(f"start {victim}")
    await parts.up()
    await parts.node.run("train", device(TEST))


@pytest.mark.spec("DN-9.2.05")
async def test_a_pod_that_was_bound_while_devlet_was_down_runs_when_it_is_up(parts: Parts) -> None:
    node = parts.node
    await node.add_claim("train", device(TEST))
    made = await node.call("POST", "/api/v1/namespaces/default/pods", claim_pod("train", "train"))
    await node.reserve("train", made)
    await parts.do("kill devlet")
    async with offline(node) as store:
        await store.create(PODS, {"target": {"name": "n1"}}, "default", name="train", subresource="binding")
        assert (await store.get(PODS, "train", "default"))["status"]["phase"] == "Pending"
    await parts.do("start devlet")
    await node.until_phase("train", "Running")


@pytest.mark.parametrize("drivers", ["alive", "killed"])
async def test_what_a_pod_left_that_was_deleted_while_devlet_was_down_is_unprepared(parts: Parts, drivers: str) -> None:
    """With its claim: nothing but the checkpoint knows of it."""
    node = parts.node
    await node.run("train", device(EXAMPLE))
    await parts.do("kill devlet")
    if drivers == "killed":
        await parts.do("kill drivers")
    async with offline(node) as store:
        await store.delete(PODS, "train", "default", DeleteOptions(grace_period=0))
        await store.delete(RESOURCE_CLAIMS, "train", "default")
    await parts.do("start devlet")
    if drivers == "killed":
        assert "train" in node.claim_checkpoint()
        await parts.do("start drivers")
    await node.until_forgotten("train")
    assert (node.specs(), node.example_claims()) == (set(), [])
