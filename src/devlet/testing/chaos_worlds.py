"""Where chaos breaks out: a devlet with its own API, or etcd and kube-apiserver with devlet's scheduler, controllers
and node; in both dra-example-driver and generic-device-plugin beside the node.

Everything but etcd and kube-controller-manager (which collects garbage there, and says that nodes are ready) may
be killed.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import DevletError
from devlet.objects.kinds import NODES, RESOURCE_SLICES
from devlet.testing.chaos import World
from devlet.testing.chaos_killer import Victim
from devlet.testing.chaos_workload import DEVICES, PLUGIN_RESOURCE
from devlet.testing.control_plane import ControlPlane, control_plane
from devlet.testing.drivers import dra_example_driver, generic_device_plugin
from devlet.testing.kube_programs import kube_controller_manager
from devlet.testing.node_process import NODE
from devlet.testing.peer_node import EXAMPLE, PeerNode
from devlet.testing.processes import RunningProcess, line, process
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until

__all__ = ["QUICK_LEASES", "control_process", "embedded_world", "kubernetes_world"]

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
    """`devlet up` is API, control and node."""
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(PeerNode(root, binaries, SETTINGS, control=True))
        yield await _world(stack, node, binaries, node.kubeconfig, {"devlet": Victim(node.kill, node.start)})


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
        yield await _world(stack, node, binaries, plane.kubeconfig, victims, scheduler_name="devlet")


async def _world(
    stack: AsyncExitStack,
    node: PeerNode,
    binaries: Path,
    kubeconfig: Path,
    victims: dict[str, Victim],
    *,
    scheduler_name: str = "",
) -> World:
    driver = Restarts(partial(dra_example_driver, binaries, node.root, kubeconfig, node_name=NODE, num_devices=DEVICES))
    plugin = Restarts(partial(generic_device_plugin, binaries, node.root, [PLUGIN]))
    for each in (driver, plugin):
        await stack.enter_async_context(each)
    cluster = await stack.enter_async_context(connected(kubeconfigs.connection([kubeconfig]), Settings(qps=0)))
    victims |= {"driver": Victim(driver.kill, driver.start), "plugin": Victim(plugin.kill, plugin.start)}
    ready = partial(_ready, cluster, node)
    await ready()
    return World(cluster, {NODE: node}, victims, ready, scheduler_name)


def _part(plane: ControlPlane, program: str) -> Victim:
    return Victim(partial(plane.kill, program), partial(plane.start, program))


async def _ready(cluster: Cluster, node: PeerNode) -> None:
    """The node is ready, and has everything that it had in the beginning."""

    async def lacks() -> list[str]:
        try:
            return await _lacks(cluster, node)
        except (DevletError, LookupError) as e:
            return [f"{type(e).__name__}: {e}"]

    await until(lacks, lambda found: not found, within=PATIENCE)


async def _lacks(cluster: Cluster, node: PeerNode) -> list[str]:
    lacking = []
    if (await node.driver_states()).get(EXAMPLE, {}).get("state") != "Connected":
        lacking.append("driver")
    plugin = (await node.plugin_states()).get(PLUGIN_RESOURCE.replace("/", ":"), {})
    if (plugin.get("state"), plugin.get("healthy")) != ("Connected", DEVICES):
        lacking.append("plugin")
    slices = (await cluster.list(RESOURCE_SLICES)).items
    if sum(len(each["spec"].get("devices") or ()) for each in slices) != DEVICES:
        lacking.append("slices")
    found = await cluster.get(NODES, NODE)
    if found["status"]["allocatable"].get(PLUGIN_RESOURCE) != str(DEVICES):
        lacking.append("allocatable")
    if found["spec"].get("taints"):
        lacking.append(f"taints {found['spec']['taints']}")
    return lacking
