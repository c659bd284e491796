"""The tour: a node with two drivers, and pods that get devices, share one, wait for one. On this machine, in a
directory that vanishes.

It is told by someone who only writes objects and looks at the board. Each step is over when the board shows what was
promised, and the tour fails when it never does.
"""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster
from devlet.cluster.informer import Informer
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.daemon.config import Config
from devlet.daemon.main import embedded
from devlet.daemon.root import longest_socket_path
from devlet.demo import cast, drivers
from devlet.demo.board import Board
from devlet.errors import Unavailable
from devlet.kit import socket_paths
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.serve.kube_api.paths import VIEWS

ABOUT = (
    "One node, with the Kubernetes API, scheduler and controllers in this process; no root, no network, no container.",
    "The devices are fake; the sockets, the API and everything that is decided about them are real.",
)

_WATCHED = (kinds.NODES, kinds.RESOURCE_SLICES, kinds.RESOURCE_CLAIMS, kinds.PODS, kinds.EVENTS)
_DEVICES = VIEWS.resource("devlet.dev/v1alpha1", "devices")
_HOLDERS = VIEWS.resource("devlet.dev/v1alpha1", "holders")
PATIENCE = 60.0  # seconds for what takes a fraction of one

Pause = Callable[[], Awaitable[None]]


async def tour(board: Board, pause: Pause) -> None:
    """Run the whole story; `pause` comes between the steps, for those who look on. Unavailable if a promise is not
    kept."""
    with tempfile.TemporaryDirectory(prefix="dv", dir=_place()) as directory:
        root = Path(directory)
        async with _node(root, board) as cluster:
            stage = _Stage(cluster, board, pause)
            await stage.tell(
                f"The node {cast.NODE} is up. While this runs: kubectl --kubeconfig {root}/kubeconfig get pods -A"
            )
            async with drivers.device_plugin(root), drivers.dra_driver(root, cluster):
                await _drivers(stage)
                await _plugin_devices(stage)
                await _templates(stage)
                await _sharing(stage)
                await _waiting(stage)


async def _drivers(stage: "_Stage") -> None:
    board, fpgas, gpus = stage.board, len(drivers.FPGAS), len(drivers.GPUS)
    await stage.until("the node offers the FPGAs", lambda: board.is_offered(cast.FPGA, fpgas))
    await stage.until("the GPUs are published", lambda: board.is_published(*drivers.GPUS))
    await stage.tell(
        f"Two drivers came: a device plugin with {fpgas} {cast.FPGA}, and {cast.GPU_DRIVER} with {gpus} GPUs."
    )


async def _plugin_devices(stage: "_Stage") -> None:
    pods = ("capture", "filter")
    await stage.create(kinds.NAMESPACES, cast.namespace())
    for name in pods:
        await stage.create(kinds.PODS, cast.pod(name, fpgas=1))
    for name in pods:
        await stage.runs(name, "an FPGA", *drivers.FPGAS)
    held = [device for name in pods for device in stage.board.held_by(name)]
    stage.check("each has an FPGA of its own", sorted(held) == sorted(drivers.FPGAS))
    await stage.tell(f"capture and filter asked for 1 {cast.FPGA}: they got {' and '.join(held)}.")


async def _templates(stage: "_Stage") -> None:
    await stage.create(kinds.DEVICE_CLASSES, cast.device_class())
    await stage.create(kinds.RESOURCE_CLAIM_TEMPLATES, cast.template("one-gpu"))
    await stage.create(kinds.RESOURCE_CLAIM_TEMPLATES, cast.template("large-gpu", "80Gi"))
    await stage.create(kinds.PODS, cast.pod("train", resourceClaimTemplateName="one-gpu"))
    await stage.create(kinds.PODS, cast.pod("infer", resourceClaimTemplateName="large-gpu"))
    await stage.runs("train", "a GPU", *drivers.GPUS)
    await stage.runs("infer", "the GPU with 80Gi", "gpu-2")
    train, infer = stage.board.held_by("train"), stage.board.held_by("infer")
    await stage.tell(
        f"A claim was made for train, which got {train[0]}, and one with 80Gi or more for infer: {infer[0]}."
    )


async def _sharing(stage: "_Stage") -> None:
    board = stage.board
    await stage.create(kinds.RESOURCE_CLAIMS, cast.claim("shared"))
    for name in ("notebook", "viewer"):
        await stage.create(kinds.PODS, cast.pod(name, resourceClaimName="shared"))
    for name in ("notebook", "viewer"):
        await stage.runs(name, "a GPU", *drivers.GPUS)
    stage.check("they share it", board.held_by("notebook") == board.held_by("viewer"))
    await stage.tell(f"notebook and viewer name the same claim, so they share {board.held_by('viewer')[0]}.")


async def _waiting(stage: "_Stage") -> None:
    board, taken = stage.board, stage.board.held_by("train")
    await stage.create(kinds.PODS, cast.pod("batch", resourceClaimTemplateName="one-gpu"))
    await stage.until("batch is told why it waits", lambda: board.why_pending("batch"))
    stage.check("batch waits", board.phase("batch") == "Pending" and not board.held_by("batch"))
    await stage.tell(f"batch waits, and is told why: {board.why_pending('batch')}")
    await stage.delete(kinds.PODS, "train")
    await stage.until("train is gone", lambda: not board.phase("train"))
    await stage.runs("batch", "the GPU that train had", *taken)
    await stage.tell(f"train was deleted, and at once batch had {taken[0]}.")


class _Stage:
    def __init__(self, cluster: Cluster, board: Board, pause: Pause) -> None:
        self.board = board
        self._cluster = cluster
        self._pause = pause

    async def tell(self, text: str) -> None:
        self.board.note(text)
        await self._pause()

    async def create(self, resource: Resource, document: Document) -> None:
        await self._cluster.create(resource, document, document["metadata"].get("namespace", ""))

    async def delete(self, resource: Resource, name: str) -> None:
        await self._cluster.delete(resource, name, cast.NAMESPACE)

    async def runs(self, pod: str, what: str, *devices: str) -> None:
        """Wait until it runs with one of these devices."""
        board = self.board
        await self.until(
            f"{pod} runs with {what}",
            lambda: board.phase(pod) == "Running" and len(held := board.held_by(pod)) == 1 and held[0] in devices,
        )

    async def until(self, promise: str, kept: Callable[[], object]) -> None:
        with anyio.move_on_after(PATIENCE):
            await self.board.until(kept)
        self.check(promise, kept())

    def check(self, promise: str, kept: object) -> None:
        if not kept:
            raise Unavailable(f"this did not come true within {PATIENCE:g} s: {promise}")


def _place() -> str:
    """Where temporary directories are, unless the path of a socket below one would be too long."""
    usual = tempfile.gettempdir()
    fits = longest_socket_path(Path(usual) / "dv12345678") <= socket_paths.MAX_BYTES
    return usual if fits else "/tmp"


@asynccontextmanager
async def _node(root: Path, board: Board) -> AsyncIterator[Cluster]:
    """The node, and everything that the board needs to see."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(embedded(Config(root=root, node_name=cast.NODE)))
        connection = kubeconfig.connection([root / "kubeconfig"])
        cluster = await stack.enter_async_context(connected(connection, Settings(qps=0)))
        for resource in _WATCHED:
            informer = Informer(cluster, resource, lambda document: document)
            informer.on_change(partial(board.see, resource.kind.kind))
            await stack.enter_async_context(running(informer.run))
        await stack.enter_async_context(running(partial(_look, cluster, board)))
        yield cluster


async def _look(cluster: Cluster, board: Board, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """A part: ask the node who holds what, whenever something happened. Its views cannot be watched."""
    task_status.started()
    while True:
        await board.seen()
        devices, holders = await cluster.list(_DEVICES), await cluster.list(_HOLDERS)
        board.hold(devices.items, holders.items)
