"""Where chaos breaks out: a devlet with its own API and a second node that has joined it, or etcd and kube-apiserver
with devlet's scheduler, controllers and node; dra-example-driver and generic-device-plugin are beside each node.

Everything but etcd and kube-controller-manager (which collects garbage there, and says that nodes are ready) may
be killed.
"""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import DevletError
from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.kinds import NODES, RESOURCE_SLICES
from devlet.testing.node_process import NODE
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.chaos.campaign import World
from tests.support.chaos.killer import Victim
from tests.support.chaos.workload import DEVICES, PLUGIN_RESOURCE
from tests.support.peers.control_plane import ControlPlane, control_plane
from tests.support.peers.drivers import dra_example_driver, generic_device_plugin
from tests.support.peers.kube_programs import kube_controller_manager
from tests.support.peers.peer_node import EXAMPLE, PeerNode

__all__ = ["QUICK_LEASES", "control_process", "embedded_world", "kubernetes_world", "node_kubeconfig"]

SECOND = "n2"  # the node that has joined

# An API server that dies in the middle of a deletion leaves pods that are being deleted and never scheduled: only
# pod-garbage-collector ends them, every 20 s.
THEIRS = ("garbage-collector-controller", "node-lifecycle-controller", "pod-garbage-collector-controller")
PLUGIN: dict[str, Any] = {
    "name": PLUGIN_RESOURCE.partition("/")[2],
    "groups": [{"count": DEVICES, "paths": [{"path": "/dev/null"}]}],
}
SETTINGS = "timeouts: {sliceWipeDelay: 5s}\n"
# What takes over from a leader that was killed need not wait for long.
QUICK_LEASES = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
PATIENCE = 60.0


def control_process(kubeconfig: Path, log: Path, *arguments: str) -> Restarts[RunningProcess]:
    """`devlet control`, until it says who leads. Each of its lives needs a log of its own to be found ready."""
    argv = [sys.executable, "-m", "devlet", "control", "--kubeconfig", str(kubeconfig), *arguments]
    lives = iter(range(1_000_000))

    def make() -> Any:
        own = log.with_suffix(f".{next(lives)}.log")
        return process(argv, log=own, name=f"devlet control {log.stem}", ready=line("devlet control is ready"))

    return Restarts(make)


@asynccontextmanager
async def embedded_world(binaries: Path, root: Path) -> AsyncIterator[World]:
    """`devlet up` is API, control and node; another is a node only."""
    async with AsyncExitStack() as stack:
        for path in (root / "1", root / "2"):
            path.mkdir()
        first = await stack.enter_async_context(PeerNode(root / "1", binaries, SETTINGS, control=True))
        credentials = root / "2.kubeconfig"
        credentials.write_text(await node_kubeconfig(first.root, SECOND))
        arguments = ["--node-name", SECOND, "--kubeconfig", str(credentials)]
        second = PeerNode(root / "2", binaries, SETTINGS, arguments=arguments)
        await stack.enter_async_context(second)
        victims = {"devlet": Victim(first.kill, first.start), SECOND: Victim(second.kill, second.start)}
        yield await _world(stack, {NODE: first, SECOND: second}, binaries, first.kubeconfig, victims)


async def node_kubeconfig(root: Path, name: str) -> str:
    """As the administrator of a devlet makes one for another machine."""
    command = [sys.executable, "-m", "devlet", "token", "node", name, "--root", str(root)]
    return (await anyio.run_process(command)).stdout.decode()


@asynccontextmanager
async def kubernetes_world(binaries: Path, root: Path, *, controls: int = 2) -> AsyncIterator[World]:
    """etcd and kube-apiserver; so many `devlet control` with all controllers; a devlet node."""
    async with AsyncExitStack() as stack:
        user = f"system:node:{NODE}"
        plane = await stack.enter_async_context(
            control_plane(binaries, root / "plane", users={user: ["system:nodes"]}, fsync=False)
        )
        manager = kube_controller_manager(binaries, root / "plane", plane.kubeconfig, controllers=THEIRS)
        await stack.enter_async_context(manager)
        victims = {"kube-apiserver": _part(plane, "kube-apiserver")}
        for number in range(controls):
            log = root / f"control-{number}.log"
            control = control_process(plane.kubeconfig, log, "--controllers", "*", *QUICK_LEASES)
            await stack.enter_async_context(control)
            victims[f"control-{number}"] = Victim(control.kill, control.start)
        (root / "node").mkdir()
        arguments = ["--kubeconfig", str(plane.kubeconfig_of(user))]
        node = PeerNode(root / "node", binaries, SETTINGS, arguments=arguments)
        await stack.enter_async_context(node)
        victims["devlet"] = Victim(node.kill, node.start)
        yield await _world(stack, {NODE: node}, binaries, plane.kubeconfig, victims, scheduler_name="devlet")


async def _world(
    stack: AsyncExitStack,
    nodes: Mapping[str, PeerNode],
    binaries: Path,
    kubeconfig: Path,
    victims: dict[str, Victim],
    *,
    scheduler_name: str = "",
) -> World:
    for name, node in nodes.items():
        of_node = partial(dra_example_driver, binaries, node.root, kubeconfig, node_name=name, num_devices=DEVICES)
        driver = Restarts(of_node)
        plugin = Restarts(partial(generic_device_plugin, binaries, node.root, [PLUGIN]))
        for program, each in (("driver", driver), ("plugin", plugin)):
            await stack.enter_async_context(each)
            victims[f"{program} of {name}"] = Victim(each.kill, each.start)
    cluster = await stack.enter_async_context(connected(kubeconfigs.connection([kubeconfig]), Settings(qps=0)))
    ready = partial(_ready, cluster, nodes)
    await ready()
    return World(cluster, nodes, victims, ready, scheduler_name)


def _part(plane: ControlPlane, program: str) -> Victim:
    return Victim(partial(plane.kill, program), partial(plane.start, program))


async def _ready(cluster: Cluster, nodes: Mapping[str, PeerNode]) -> None:
    """The nodes are ready, and have everything that they had in the beginning."""

    async def lacks() -> list[str]:
        try:
            return [each for name, node in nodes.items() for each in await _lacks(cluster, name, node)]
        except (DevletError, LookupError) as e:
            return [f"{type(e).__name__}: {e}"]

    await until(lacks, lambda found: not found, within=PATIENCE)


async def _lacks(cluster: Cluster, name: str, node: PeerNode) -> list[str]:
    lacking = []
    if (await node.driver_states()).get(EXAMPLE, {}).get("state") != "Connected":
        lacking.append("driver")
    plugin = (await node.plugin_states()).get(PLUGIN_RESOURCE.replace("/", ":"), {})
    if (plugin.get("state"), plugin.get("healthy")) != ("Connected", DEVICES):
        lacking.append("plugin")
    slices = [each for each in (await cluster.list(RESOURCE_SLICES)).items if each["spec"].get("nodeName") == name]
    if sum(len(each["spec"].get("devices") or ()) for each in slices) != DEVICES:
        lacking.append("slices")
    found = await cluster.get(NODES, name)
    if found["status"]["allocatable"].get(PLUGIN_RESOURCE) != str(DEVICES):
        lacking.append("allocatable")
    if found["spec"].get("taints"):
        lacking.append(f"taints {found['spec']['taints']}")
    return [f"{name}: {each}" for each in lacking]
