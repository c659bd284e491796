"""The tour: what works so far, shown on this machine with the embedded cluster, in a directory that vanishes.

It tells one story: objects are stored, checked and watched, and a restart loses nothing. It grows with devlet.
"""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster, WatchOptions
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.store.store import open_store
from devlet.daemon.config import Config
from devlet.daemon.kube_api import serving
from devlet.daemon.main import DATABASE
from devlet.demo import cast
from devlet.demo.board import Board
from devlet.errors import InvalidObject
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource

ABOUT = (
    "What works so far: the Kubernetes API on this machine. kubectl, Go drivers and kube-scheduler can talk to it.",
    "There is no scheduler of our own yet, so claims and pods stay pending. The GPUs are fake.",
)

_WATCHED = (
    kinds.NAMESPACES,
    kinds.DEVICE_CLASSES,
    kinds.RESOURCE_SLICES,
    kinds.RESOURCE_CLAIM_TEMPLATES,
    kinds.RESOURCE_CLAIMS,
    kinds.PODS,
)
_SEEN_WITHIN = 10.0  # seconds from a write until its watch event

Pause = Callable[[], Awaitable[None]]


async def tour(board: Board, pause: Pause) -> None:
    """Run the whole story; `pause` comes between the steps, for those who look on."""
    with tempfile.TemporaryDirectory(prefix="dv") as directory:
        root = Path(directory)
        async with _cluster(root, board) as cluster:
            board.note(
                f"Serving the Kubernetes API. While this runs: kubectl --kubeconfig {root}/kubeconfig get pods -A"
            )
            await pause()
            await _before_the_restart(_Stage(cluster, board, pause))
        shown = board.count()
        board.note(f"Stopped the cluster with {shown} objects on the board.")
        await pause()
        async with _cluster(root, board) as cluster:
            stage = _Stage(cluster, board, pause)
            await _after_the_restart(stage, shown)


async def _before_the_restart(stage: "_Stage") -> None:
    await stage.create(kinds.NAMESPACES, cast.namespace())
    await stage.create(kinds.DEVICE_CLASSES, cast.device_class())
    await stage.create(kinds.RESOURCE_SLICES, cast.slice_of("gpu-0", "gpu-1"))
    await stage.create(kinds.RESOURCE_CLAIM_TEMPLATES, cast.template("one-gpu"))
    await stage.create(kinds.RESOURCE_CLAIMS, cast.claim("shared-gpu"))
    await stage.create(kinds.PODS, cast.pod("train", resourceClaimTemplateName="one-gpu"))
    await stage.create(kinds.PODS, cast.pod("notebook", resourceClaimName="shared-gpu"))
    await stage.refuse(kinds.RESOURCE_CLAIMS, cast.claim("minus-one-gpu", count=-1))
    await stage.update(kinds.RESOURCE_SLICES, cast.slice_of("gpu-0", "gpu-1", "gpu-2", generation=2))
    await stage.delete(kinds.PODS, "notebook", cast.NAMESPACE)


async def _after_the_restart(stage: "_Stage", shown: int) -> None:
    kept = 0
    for resource in _WATCHED:
        kept += len((await stage.cluster.list(resource)).items)
    stage.board.note(f"Started again: {kept} of {shown} objects are there, and every watch resumed where it was.")
    await stage.pause()
    await stage.create(kinds.PODS, cast.pod("after-restart", resourceClaimName="shared-gpu"))


class _Stage:
    """Each act changes the cluster, and is over when the board shows it."""

    def __init__(self, cluster: Cluster, board: Board, pause: Pause) -> None:
        self.cluster = cluster
        self.board = board
        self.pause = pause

    async def create(self, resource: Resource, document: Document) -> None:
        await self._shown(await self.cluster.create(resource, document, document["metadata"].get("namespace", "")))

    async def update(self, resource: Resource, document: Document) -> None:
        await self._shown(await self.cluster.update(resource, document))

    async def delete(self, resource: Resource, name: str, namespace: str) -> None:
        await self._shown(await self.cluster.delete(resource, name, namespace))

    async def refuse(self, resource: Resource, document: Document) -> None:
        """Offer an object that breaks a rule, and show what the cluster says about it."""
        try:
            await self.cluster.create(resource, document, cast.NAMESPACE)
        except InvalidObject as e:
            self.board.note(f"Refused, as it should be: {e}")
        await self.pause()

    async def _shown(self, document: Document) -> None:
        kind, version = document["kind"], int(document["metadata"]["resourceVersion"])
        with anyio.fail_after(_SEEN_WITHIN):
            await self.board.reached(kind, version)
        await self.pause()


@asynccontextmanager
async def _cluster(root: Path, board: Board) -> AsyncIterator[Cluster]:
    """The embedded cluster behind its API, with a watch per kind that goes on where the board is."""
    clock, config = SystemClock(), Config(root=root, node_name="laptop")
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(root / DATABASE, clock=clock))
        await stack.enter_async_context(serving(store, config, clock))
        connection = kubeconfig.connection([root / "kubeconfig"])
        cluster = await stack.enter_async_context(connected(connection))
        for resource in _WATCHED:
            await stack.enter_async_context(running(partial(_follow, cluster, resource, board)))
        yield cluster


async def _follow(
    cluster: Cluster, resource: Resource, board: Board, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
) -> None:
    """A part: show every change of a kind on the board."""
    seen = board.version(resource.kind.kind)
    async with cluster.watch(resource, options=WatchOptions(resource_version=str(seen))) as events:
        task_status.started()
        async for event in events:
            board.see(event)
