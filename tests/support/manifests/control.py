"""The four combinations in which manifests are tried: devlet's API or Kubernetes', devlet's control loops or theirs.

    async with environment(binaries, root, classes, api="kubernetes", control="devlet") as world: ...

On Kubernetes the node has the rights of a node, and devlet's control loops those that `deploy` gives them. There pods
have to ask for our scheduler, and those loops of kube-controller-manager go on that ours do not replace.
"""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from devlet.kit.processes import RunningProcess, line, process
from devlet.testing.node_process import NODE
from devlet.testing.restarts import Restarts
from tests.support.manifests.environment import Control, Environment, environment_on
from tests.support.peers.control_plane import ControlPlane, control_plane
from tests.support.peers.kube_programs import CONTROLLERS, kube_controller_manager, kube_scheduler
from tests.support.peers.peer_node import PeerNode

__all__ = ["embedded_environment", "kubernetes_environment"]

REPLACED = ("resourceclaim-controller", "device-taint-eviction-controller")
BESIDE = tuple(name for name in CONTROLLERS if name not in REPLACED)
# Those that devlet has itself, or does not need, when its API is the embedded one.
THEIRS = (*REPLACED, "garbage-collector-controller", "pod-garbage-collector-controller")

NODE_USER = f"system:node:{NODE}"
OURS = "devlet"  # the name of our scheduler
ACCOUNT = "devlet-control"
ACCOUNT_NAMESPACE = "devlet-system"


@asynccontextmanager
async def embedded_environment(
    binaries: Path, root: Path, classes: Path, *, control: Control
) -> AsyncIterator[Environment]:
    reference = control == "reference"
    arguments = ["--controllers=-garbage-collector"] if reference else []
    rescue: Callable[[], Awaitable[None]] | None = None
    async with AsyncExitStack() as stack:
        node = PeerNode(root, binaries, arguments=arguments, control=not reference)
        await stack.enter_async_context(node)
        if reference:
            folder, config = root / "peers", node.kubeconfig
            scheduler = await stack.enter_async_context(Restarts(partial(kube_scheduler, binaries, folder, config)))
            rescue = scheduler.start
            await stack.enter_async_context(kube_controller_manager(binaries, folder, config, controllers=THEIRS))
        world = environment_on(node, binaries, node.kubeconfig, classes, control=control, api="embedded")
        yield replace(await stack.enter_async_context(world), rescue=rescue)


@asynccontextmanager
async def kubernetes_environment(
    binaries: Path, root: Path, classes: Path, deploy: Path, *, control: Control
) -> AsyncIterator[tuple[Environment, ControlPlane]]:
    """`deploy` is the folder with the roles of devlet's control loops."""
    reference = control == "reference"
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(
            control_plane(
                binaries,
                root / "plane",
                scheduler=reference,
                controller_manager=reference,
                users={NODE_USER: ["system:nodes"]},
                fsync=False,
            )
        )
        if not reference:
            beside = kube_controller_manager(binaries, root / "beside", plane.kubeconfig, controllers=BESIDE)
            await stack.enter_async_context(beside)
            await stack.enter_async_context(await _control_loops(plane, root, deploy))
        (root / "node").mkdir()
        node = PeerNode(root / "node", binaries, arguments=["--kubeconfig", str(plane.kubeconfig_of(NODE_USER))])
        await stack.enter_async_context(node)
        world = environment_on(
            node,
            binaries,
            plane.kubeconfig,
            classes,
            control=control,
            api="kubernetes",
            scheduler="" if reference else OURS,
        )
        made = await stack.enter_async_context(world)
        yield replace(made, rescue=partial(plane.restart, "kube-scheduler") if reference else None), plane


async def _control_loops(plane: ControlPlane, root: Path, deploy: Path) -> AbstractAsyncContextManager[RunningProcess]:
    """All of them, as the service account that the manifests in `deploy` describe."""
    for file in ("rbac-control.yaml", "rbac-controllers.yaml"):
        await _kubectl(plane, "apply", "-f", str(deploy / file))
    token = await _kubectl(plane, "create", "token", ACCOUNT, "-n", ACCOUNT_NAMESPACE)
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.strip()}
    path = root / "control.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    argv = [sys.executable, "-m", "devlet", "control", "--kubeconfig", str(path), "--controllers", "*"]
    return process(argv, log=root / "control.log", name="devlet control", ready=line("devlet control is ready"))


async def _kubectl(plane: ControlPlane, *arguments: str) -> str:
    answer = await plane.kubectl(*arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
