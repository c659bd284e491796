"""devlet is killed with SIGKILL at random points while it admits and removes 500 pods with devices.

A cycle takes five rounds: 500 pods come in four parts, and then all of them go. In each round devlet is killed after a
random number of answers and started again, sometimes twice; then the other calls follow. When it has settled, every
device has at most one owner, and the views, the pods' statuses, the checkpoint and PodResources agree on it.
"""

import os
import random
import signal
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.errors import AlreadyExists, NotFound, Unavailable
from devlet.kit.processes import RunningProcess
from devlet.objects.documents import Document
from devlet.testing.node_process import PODS, NodeProcess, devices_in_status, plugin_process, pod
from devlet.testing.waiting import until
from devlet.wire.podresources_v1 import api_pb2 as pb

pytestmark = pytest.mark.anyio

ROUNDS = (int(os.environ.get("DEVLET_CRASH_ROUNDS", "4")) + 1) // 2  # one takes as long as two of the store
NUMBER = 500
PARTS = 4
DEVICES = 510
CALLERS = 8
GPU = "vendor.com/gpu"
CONFIGURATION = f"""
maxPods: {2 * NUMBER}
timeouts:
  historyAge: 2s
  compactEvery: 1s
"""  # no life is long enough for the usual times, and the history of all rounds would have to be read at each start
SETTLED = 60.0  # seconds, on a busy machine


class Crash:
    """Calls a node that is killed after so many answers; 0 means never."""

    def __init__(self, node: NodeProcess, after: int) -> None:
        self._node = node
        self._left = after
        self.answered: set[str] = set()

    async def call(self, method: str, names: list[str]) -> None:
        todo = iter(names)

        async def caller() -> None:
            for name in todo:
                try:
                    await change(self._node, method, name)
                except Unavailable:
                    return
                self.answered.add(name)
                self._left -= 1
                if self._left == 0:
                    await self._node.kill()

        async with anyio.create_task_group() as tasks:
            for _ in range(CALLERS):
                tasks.start_soon(caller)


async def change(node: NodeProcess, method: str, name: str) -> None:
    """Make the calls. They can be repeated."""
    try:
        if method == "POST":
            await node.call(method, PODS, pod(name, {GPU: 1}))
        else:
            await node.call(method, f"{PODS}/{name}")
    except (AlreadyExists, NotFound):
        pass


class Siege:
    """A node, its plugin, and what is known from answers: which pods must exist, and which devices they had."""

    def __init__(self, node: NodeProcess, plugins: AsyncExitStack, chance: random.Random) -> None:
        self._node = node
        self._plugins = plugins
        self._chance = chance
        self._plugin: RunningProcess | None = None
        self._promised: dict[str, frozenset[str]] = {}
        self.wanted: set[str] = set()

    async def start_plugin(self) -> None:
        if self._plugin is not None:
            self._plugin.send_signal(signal.SIGKILL)
            await self._plugin.wait()
        self._plugin = await self._plugins.enter_async_context(plugin_process(self._node, GPU, DEVICES))

    async def create(self, names: list[str]) -> None:
        answered = await self._crash("POST", names)
        self.wanted.update(names)
        assert (await self._node.pods()).keys() >= answered, "a pod that was acknowledged is gone"
        await self._go_on("POST", names, answered)

    async def delete_all(self) -> None:
        names = sorted(self.wanted)
        answered = await self._crash("DELETE", names)
        self.wanted.clear()
        await self._go_on("DELETE", names, answered)

    async def _crash(self, method: str, names: list[str]) -> set[str]:
        """Return the names of the calls that were answered before."""
        self._chance.shuffle(names)
        crash = Crash(self._node, self._chance.randint(1, len(names)))
        await crash.call(method, names)
        if self._chance.random() < 0.1:
            await self.start_plugin()
        await self._node.start()
        if self._chance.random() < 0.25:
            await self._node.kill()
            await self._node.start()
        return crash.answered

    async def _go_on(self, method: str, names: list[str], answered: set[str]) -> None:
        await Crash(self._node, 0).call(method, [name for name in names if name not in answered])
        await self._settled()

    async def _settled(self) -> None:
        """Wait until exactly these pods run, and compare all records of which pod has which device."""
        node = self._node
        await node.until_healthy(GPU, DEVICES, within=SETTLED)
        with suppress(AssertionError):  # the pods tell why; but to look at all of them is costly
            await until(node.plugin_states, self._is_held, within=SETTLED)
        pods = await until(node.pods, self._are_settled, within=SETTLED)
        statuses = {name: frozenset(devices_in_status(document)[GPU]) for name, document in pods.items()}
        assert all(len(ids) == 1 for ids in statuses.values())
        assert len({id for ids in statuses.values() for id in ids}) == len(pods), "a device has two owners"
        for name in self._promised.keys() & pods.keys():
            assert statuses[name] == self._promised[name], f"{name} lost what it had"
        self._promised = statuses
        states = [each["state"] for each in (await node.devices())[GPU].values()]
        assert (states.count("Held"), states.count("Free")) == (len(pods), DEVICES - len(pods)), "a device was lost"
        assert await held(node) == statuses
        assert await in_pod_resources(node) == statuses
        assert on_disk(node, pods) == statuses

    def _is_held(self, plugins: dict[str, Document]) -> bool:
        return bool(plugins[GPU.replace("/", ":")]["held"] == len(self.wanted))

    def _are_settled(self, pods: dict[str, Document]) -> bool:
        """Return True if the wanted pods run and no others exist. A deleted pod may end in any way."""
        ready = [runs(pods[name]) for name in self.wanted & pods.keys()]
        return all(ready) and pods.keys() == self.wanted


@pytest.mark.crash
@pytest.mark.long
@pytest.mark.timeout(600 + 20 * ROUNDS)
async def test_no_device_is_lost_or_has_two_owners_whenever_devlet_is_killed(root: Path, crash_seed: int) -> None:
    async with NodeProcess(root, CONFIGURATION) as node, AsyncExitStack() as plugins:
        siege = Siege(node, plugins, random.Random(crash_seed))
        await siege.start_plugin()
        await node.until_healthy(GPU, DEVICES)
        for number in range(ROUNDS):
            if number % (PARTS + 1) < PARTS:
                await siege.create([f"pod-{number}-{index}" for index in range(NUMBER // PARTS)])
            else:
                await siege.delete_all()
        if siege.wanted:
            await siege.delete_all()
        assert await node.held() == {}
        assert not node.checkpoint().entries
    assert "Traceback" not in node.log


def runs(document: Document) -> bool:
    status = document["status"]
    assert status.get("phase") != "Failed", f"{document['metadata']['name']} was rejected: {status.get('message')}"
    return status.get("phase") == "Running" and GPU in devices_in_status(document)


async def held(node: NodeProcess) -> dict[str, frozenset[str]]:
    return {name: frozenset(resources[GPU]) for name, resources in (await node.held()).items()}


def on_disk(node: NodeProcess, pods: dict[str, Document]) -> dict[str, frozenset[str]]:
    names = {document["metadata"]["uid"]: name for name, document in pods.items()}
    return {
        names[entry.pod]: frozenset(id for ids in (entry.devices or {}).values() for id in ids or ())
        for entry in node.checkpoint().entries or ()
    }


async def in_pod_resources(node: NodeProcess) -> dict[str, frozenset[str]]:
    async with grpc.aio.insecure_channel(f"unix:{node.root}/pod-resources/kubelet.sock") as channel:
        ask = channel.unary_unary(
            "/v1.PodResourcesLister/List",
            request_serializer=pb.ListPodResourcesRequest.SerializeToString,
            response_deserializer=pb.ListPodResourcesResponse.FromString,
        )
        answer = await ask(pb.ListPodResourcesRequest(), timeout=60)
    found = {
        each.name: frozenset(id for container in each.containers for one in container.devices for id in one.device_ids)
        for each in answer.pod_resources
    }
    return {name: ids for name, ids in found.items() if ids}
