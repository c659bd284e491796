"""One devlet node with four drivers: a DRA driver and a device plugin of the SDK, and one of each kind in Go. Pods use
all of them, whoever is killed or stopped in between."""

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from devlet.examples import fake_gpu_dra, fake_gpu_plugin
from devlet.kit.processes import RunningProcess, process
from devlet.objects.documents import Document
from devlet.testing.node_process import NODE
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.claim_node import claim_pod
from tests.support.peers.drivers import generic_device_plugin
from tests.support.peers.peer_node import EXAMPLE, PeerNode, device

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

OURS = "sdk.example.com"  # the DRA driver; EXAMPLE is the one in Go
COUNTS = {"example.com/gpu": 4, "squat.ai/null": 4}  # of the plugins: the one of the SDK, and the one in Go
NULL: dict[str, Any] = {"name": "null", "groups": [{"count": 4, "paths": [{"path": "/dev/null"}]}]}
RECOVERY = 60.0  # seconds; the one in Go takes its time


class Program(Protocol):
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def kill(self) -> None: ...


class Party:
    """The node and its drivers, by the names that tests have for them."""

    def __init__(self, node: PeerNode, programs: Mapping[str, Program]) -> None:
        self.node = node
        self.programs = programs

    async def until_up(self) -> None:
        await self.node.until_up(OURS, EXAMPLE)
        for resource, count in COUNTS.items():
            await self.node.until_healthy(resource, count, within=RECOVERY)
        for driver in (OURS, EXAMPLE):
            await self.node.until_published(driver)

    async def submit(self, name: str, number: int) -> None:
        """A pod with a device of each driver. Of DRA drivers it is that of the number."""
        results = [device(driver, f"gpu-{number}", request) for driver, request in ((OURS, "sdk"), (EXAMPLE, "go"))]
        await self.node.add_claim(name, *results)
        document = claim_pod(name, name)
        document["spec"]["containers"][0]["resources"]["limits"] = dict.fromkeys(COUNTS, "1")
        await self.node.add_pod(document)

    async def run(self, name: str, number: int) -> None:
        await self.submit(name, number)
        await self.node.until_phase(name, "Running", within=RECOVERY)

    async def state(self, name: str) -> Document:
        """What must not change while others come and go."""
        pod = (await self.node.pods())[name]
        return {
            "uid": pod["metadata"]["uid"],
            "containers": pod["status"]["containerStatuses"],
            "devices": (await self.node.held())[name],
            "environment": await self.node.environment(name),
        }

    def left(self) -> list[str]:
        """What drivers have written down of claims."""
        ours = self.node.root / "plugins" / OURS / "claims"
        return [*(path.name for path in ours.iterdir()), *self.node.example_claims()]


def sdk(node: PeerNode, module: str, *flags: str) -> Restarts[RunningProcess]:
    def make() -> AbstractAsyncContextManager[RunningProcess]:
        argv = [sys.executable, "-m", module, f"--kubelet-root={node.root}", *flags]
        return process(argv, name=module, log=node.root / f"{module}.log")

    return Restarts(make)


@pytest.fixture(scope="module")
async def running(peers: "Peers") -> AsyncIterator[Party]:
    peers.need("dra-example-kubeletplugin", "generic-device-plugin")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    node = PeerNode(root, peers.binaries)
    cluster = (f"--node-name={NODE}", f"--kubeconfig={node.kubeconfig}", f"--cdi-root={root / 'cdi'}")
    drivers = {
        "the DRA driver of the SDK": sdk(node, fake_gpu_dra.__name__, f"--driver-name={OURS}", *cluster),
        "the device plugin of the SDK": sdk(node, fake_gpu_plugin.__name__),
        "the DRA driver in Go": node.example_driver(num_devices=4),
        "the device plugin in Go": Restarts(partial(generic_device_plugin, peers.binaries, root, [NULL])),
    }
    async with node, AsyncExitStack() as stack:
        for driver in drivers.values():
            await stack.enter_async_context(driver)
        yield Party(node, {"devlet": node, **drivers})
    shutil.rmtree(root)


@pytest.fixture
async def party(running: Party) -> AsyncIterator[Party]:
    """Everybody is there, and nobody uses anything; and in the end nothing may be left."""
    await running.until_up()
    yield running
    await running.until_up()
    await running.node.leave_nothing()
    assert running.left() == []


async def test_a_pod_has_devices_of_all_drivers(party: Party) -> None:
    await party.run("all", 1)
    state = await party.state("all")
    assert state["devices"].keys() == COUNTS.keys()
    assert {"GPU_1", "GPU_1_SHARING", "GPU", "GPU_DEVICE_1"} <= state["environment"].keys()
    container = (await party.node.containers("all"))["main"]
    assert "/dev/null" in str(container)


WHO = [
    "devlet",
    "the DRA driver of the SDK",
    "the device plugin of the SDK",
    "the DRA driver in Go",
    "the device plugin in Go",
]


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("who", WHO)
async def test_whoever_goes_and_comes_back_pods_keep_their_devices_and_others_get_some(
    party: Party, who: str, how: str
) -> None:
    await party.run("early", 0)
    before = await party.state("early")
    program = party.programs[who]
    await (program.kill() if how == "kill" else program.stop())
    if who != "devlet":
        await party.submit("meanwhile", 1)
    await program.start()
    await party.until_up()
    await until(partial(party.state, "early"), lambda found: found == before)  # its health is told anew
    await party.run("late", 2)
    if who != "devlet":
        await party.node.until_pod("meanwhile", partial(is_settled, who), within=RECOVERY)


def is_settled(who: str, pod: Document) -> bool:
    """For a DRA driver a pod waits. Of a device plugin that is not there it is refused, unless it was back in time."""
    phase, reason = pod["status"]["phase"], pod["status"].get("reason")
    return phase == "Running" or ("plugin" in who and (phase, reason) == ("Failed", "UnexpectedAdmissionError"))


async def test_all_of_them_are_killed_at_once(party: Party) -> None:
    await party.run("early", 0)
    before = await party.state("early")
    for program in party.programs.values():
        await program.kill()
    for program in party.programs.values():
        await program.start()
    await party.until_up()
    await until(partial(party.state, "early"), lambda found: found == before)
    await party.run("late", 1)
    for name in ("early", "late"):
        await party.node.delete(name)
