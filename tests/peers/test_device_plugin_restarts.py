"""devlet, an unmodified device plugin, or both of them are killed and started again: a pod that has a device keeps it,
and the others can be had as before.

How long that takes is the plugin's choice: the generic device plugin looks for its socket every second, and then waits
for five; the sample one sees devlet's new socket at once, and then waits for ten. `pytest -rP` shows the times."""

import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import pytest

from devlet.kit.processes import RunningProcess
from devlet.objects.documents import Document
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from tests.support.peers.drivers import generic_device_plugin, sample_device_plugin

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

NULL: dict[str, Any] = {"name": "null", "groups": [{"count": 3, "paths": [{"path": "/dev/null"}]}]}
RESOURCES = {"generic": "squat.ai/null", "sample": "example.com/resource"}
COUNTS = {"generic": 3, "sample": 2}
BOTH = pytest.mark.parametrize("name", ["generic", "sample"])
RECOVERY = 60.0  # seconds

T = TypeVar("T")


class Restarts(Generic[T]):
    """A program that is started again and again; `running` is the one of the last start."""

    running: T

    def __init__(self, start: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._start = start
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        self.running = await self._stack.enter_async_context(self._start())

    async def kill(self, program: RunningProcess) -> None:
        program.send_signal(signal.SIGKILL)
        assert await program.wait() == -signal.SIGKILL
        await self.stop()

    async def stop(self) -> None:
        await self._stack.aclose()


@dataclass
class Node:
    """devlet and one plugin."""

    name: str
    devlet: Restarts[EmbeddedApi]
    plugin: Restarts[RunningProcess]

    @property
    def resource(self) -> str:
        return RESOURCES[self.name]

    async def kill_devlet(self) -> None:
        await self.devlet.kill(self.devlet.running.program)

    async def kill_plugin(self) -> None:
        await self.plugin.kill(self.plugin.running)

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        done = await self.devlet.running.kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def read(self, *what: str) -> Any:
        return json.loads(await self.kubectl("get", *what, "-o", "json"))

    async def counts(self) -> tuple[str, str]:
        """Capacity and allocatable."""
        status = (await self.read("node", "n1"))["status"]
        return status["capacity"].get(self.resource, ""), status["allocatable"].get(self.resource, "")

    async def health(self) -> list[str]:
        return [each["status"]["health"] for each in (await self.read("devices"))["items"]]

    async def run_pod(self, name: str) -> str:
        """Returns the device that it has."""
        await self.kubectl("apply", "-f", "-", stdin=json.dumps(pod(name, {self.resource: "1"})))
        await self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
        return str((await self.containers(name))[0]["devices"][0]["ids"][0])

    async def containers(self, name: str) -> list[Document]:
        """What its containers hold, and get with it."""
        found: list[Document] = (await self.read("holder", name))["status"]["containers"]
        return found

    async def pod(self, name: str) -> Document:
        """Whose containers, and since when they run."""
        found = await self.read("pod", name)
        return {"uid": found["metadata"]["uid"], "phase": found["status"]["phase"]} | {
            "containers": found["status"]["containerStatuses"]
        }

    async def back(self) -> None:
        """Return when all devices are healthy, and counted."""
        count = COUNTS[self.name]
        await until(self.health, lambda found: found == ["Healthy"] * count, within=RECOVERY)
        await until(self.counts, lambda found: found == (str(count), str(count)), within=RECOVERY)


def pod(name: str, limits: Mapping[str, str]) -> Document:
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    spec = {"nodeName": "n1", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@asynccontextmanager
async def node(peers: "Peers", root: Path, name: str) -> AsyncIterator[Node]:
    peers.need("kubectl", f"{name}-device-plugin")
    plugin: Callable[[], AbstractAsyncContextManager[RunningProcess]] = {
        "generic": partial(generic_device_plugin, peers.binaries, root, [NULL]),
        "sample": partial(sample_device_plugin, peers.binaries, root),
    }[name]
    devlet = Restarts(partial(embedded_api, root, binaries=peers.binaries, arguments=["--node-name=n1"]))
    made = Node(name, devlet, Restarts(plugin))
    try:
        await made.devlet.start()
        await made.plugin.start()
        await made.back()
        yield made
    finally:
        await made.plugin.stop()
        await made.devlet.stop()


@asynccontextmanager
async def kept(node: Node) -> AsyncIterator[None]:
    """What the block does changes nothing for a pod with a device, and others get other devices afterwards."""
    device = await node.run_pod("keeps")
    before = await node.containers("keeps"), await node.pod("keeps")
    yield
    began = monotonic()
    await node.back()
    sys.stdout.write(f"back after {monotonic() - began:.1f} s\n")
    assert (await node.containers("keeps"), await node.pod("keeps")) == before
    others = [await node.run_pod(f"other-{n}") for n in range(COUNTS[node.name] - 1)]
    assert len({device, *others}) == COUNTS[node.name]


@pytest.mark.spec("DP-8.76")
@BOTH
async def test_a_plugin_finds_devlet_again(peers: "Peers", root: Path, name: str) -> None:
    async with node(peers, root, name) as n1, kept(n1):
        await n1.kill_devlet()
        await n1.devlet.start()
        await n1.containers("keeps")  # before the plugin is back
    assert "Traceback" not in (root / "up.log").read_text()


@pytest.mark.spec("DP-8.76")
@pytest.mark.spec("DP-8.14")
@BOTH
async def test_devlet_finds_a_plugin_again(peers: "Peers", root: Path, name: str) -> None:
    async with node(peers, root, name) as n1, kept(n1):
        await n1.kill_plugin()
        await until(n1.counts, lambda found: found == (str(COUNTS[name]), "0"))
        assert set(await n1.health()) == {"Unknown"}
        assert (await n1.pod("keeps"))["phase"] == "Running"
        await n1.plugin.start()


@pytest.mark.spec("DP-8.76")
@pytest.mark.spec("DP-8.17")
@BOTH
async def test_devlet_comes_back_before_the_plugin(peers: "Peers", root: Path, name: str) -> None:
    async with node(peers, root, name) as n1, kept(n1):
        await n1.kill_plugin()
        await n1.kill_devlet()
        await n1.devlet.start()
        [plugin] = (await n1.read("plugins"))["items"]
        assert plugin["status"]["state"] == "Awaited"
        assert (await n1.pod("keeps"))["phase"] == "Running"
        await n1.plugin.start()


@pytest.mark.spec("DP-8.76")
async def test_the_plugin_comes_back_before_devlet(peers: "Peers", root: Path) -> None:
    """The sample device plugin does not: without a kubelet it ends at once."""
    log = root / "generic-device-plugin.log"

    async def tried(before: int) -> bool:
        return "failed to register with kubelet" in (await anyio.Path(log).read_text())[before:]

    async with node(peers, root, "generic") as n1, kept(n1):
        await n1.kill_devlet()
        await n1.kill_plugin()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(n1.plugin.start)
            await until(partial(tried, len(log.read_text())))
            await n1.devlet.start()


@pytest.mark.spec("DP-8.04")
async def test_a_new_plugin_takes_over_from_the_old_one_without_a_gap(peers: "Peers", root: Path) -> None:
    seen: set[tuple[str, str]] = set()

    async def look(node: Node) -> None:
        while True:
            seen.add(await node.counts())

    async with node(peers, root, "sample") as n1, kept(n1), anyio.create_task_group() as tasks:
        tasks.start_soon(look, n1)
        old, n1.plugin = n1.plugin, Restarts(partial(sample_device_plugin, peers.binaries, root))
        await n1.plugin.start()
        await until(partial(states, n1), lambda found: found == ["Connected", "Standby"])
        await old.stop()
        await until(partial(states, n1), lambda found: found in (["Connected"], ["Connected", "Disconnected"]))
        tasks.cancel_scope.cancel()
    assert seen == {("2", "2")}


async def states(node: Node) -> list[str]:
    return [plugin["status"]["state"] for plugin in (await node.read("plugins"))["items"]]
