"""The story of the demo: a node with two drivers, and pods that get devices, share one and wait for one.

It runs on this machine, in a temporary directory. Each step only writes objects and then waits until the board shows
the expected result; if that does not happen in time, the demo fails.
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
from devlet.demo import drivers, manifests
from devlet.demo.board import Board, Suggestion
from devlet.errors import Unavailable
from devlet.kit import socket_paths
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.serve.kube_api.paths import VIEWS

ABOUT = (
    "A Kubernetes node with its API, scheduler and controllers in one process. No root, no network, no containers.",
    "The devices are simulated. The sockets, the API and every decision about the devices are real.",
)

_WATCHED = (kinds.NODES, kinds.RESOURCE_SLICES, kinds.RESOURCE_CLAIMS, kinds.PODS, kinds.EVENTS)
_DEVICES = VIEWS.resource("devlet.dev/v1alpha1", "devices")
_HOLDERS = VIEWS.resource("devlet.dev/v1alpha1", "holders")
PATIENCE = 60.0  # seconds to wait for something that normally takes a fraction of a second

Pause = Callable[[], Awaitable[None]]
Afterwards = Callable[[Path], Awaitable[None]]


async def tour(board: Board, pause: Pause, afterwards: Afterwards | None = None) -> None:
    """Run all steps with a pause after each, then `afterwards` with the root of the node, which is still running.

    Raises Unavailable if a step does not have the expected result."""
    with tempfile.TemporaryDirectory(prefix="dv", dir=_place()) as directory:
        root = Path(directory)
        async with _node(root, board) as cluster:
            steps = _Steps(cluster, board, pause)
            await steps.report(f"The node {manifests.NODE} is up.")
            async with drivers.device_plugin(root), drivers.dra_driver(root, cluster):
                await _drivers(steps)
                await _plugin_devices(steps)
                await _templates(steps)
                await _sharing(steps)
                await _waiting(steps)
                await _still_waiting(steps)
                if afterwards:
                    await afterwards(root)


def suggestions(program: str, root: Path) -> list[Suggestion]:
    """Return commands that work after the last step."""
    namespace = manifests.NAMESPACE
    return [
        Suggestion("See which pod holds which device:", f"{program} get holders -A --root {root}"),
        Suggestion("Ask why render is waiting:", f"{program} explain pod/render -n {namespace} --root {root}"),
        Suggestion(
            "Delete infer, and see here how render gets its GPU:",
            f"{program} delete pod/infer -n {namespace} --root {root}",
        ),
    ]


async def _drivers(steps: "_Steps") -> None:
    board, fpgas, gpus = steps.board, len(drivers.FPGAS), len(drivers.GPUS)
    await steps.until("the node offers the FPGAs", lambda: board.is_offered(manifests.FPGA, fpgas))
    await steps.until("the GPUs are published", lambda: board.is_published(*drivers.GPUS))
    await steps.report(
        f"Two drivers registered: a device plugin with {fpgas} {manifests.FPGA}, and the DRA driver "
        f"{manifests.GPU_DRIVER} with {gpus} GPUs."
    )


async def _plugin_devices(steps: "_Steps") -> None:
    pods = ("capture", "filter")
    await steps.create(kinds.NAMESPACES, manifests.namespace())
    for name in pods:
        await steps.create(kinds.PODS, manifests.pod(name, fpgas=1))
    for name in pods:
        await steps.runs(name, "an FPGA", *drivers.FPGAS)
    held = [device for name in pods for device in steps.board.held_by(name)]
    steps.check("each has an FPGA of its own", sorted(held) == sorted(drivers.FPGAS))
    got = " and ".join(held)
    await steps.report(f"The pods capture and filter each asked for one {manifests.FPGA} and got {got}.")


async def _templates(steps: "_Steps") -> None:
    await steps.create(kinds.DEVICE_CLASSES, manifests.device_class())
    await steps.create(kinds.RESOURCE_CLAIM_TEMPLATES, manifests.template("one-gpu"))
    await steps.create(kinds.RESOURCE_CLAIM_TEMPLATES, manifests.template("large-gpu", "80Gi"))
    await steps.create(kinds.PODS, manifests.pod("train", resourceClaimTemplateName="one-gpu"))
    await steps.create(kinds.PODS, manifests.pod("infer", resourceClaimTemplateName="large-gpu"))
    await steps.runs("train", "a GPU", *drivers.GPUS)
    await steps.runs("infer", "the GPU with 80Gi", "gpu-2")
    train, infer = steps.board.held_by("train"), steps.board.held_by("infer")
    await steps.report(
        f"train asked for any GPU and got {train[0]}. infer asked for a GPU with at least 80Gi and got {infer[0]}."
    )


async def _sharing(steps: "_Steps") -> None:
    board = steps.board
    await steps.create(kinds.RESOURCE_CLAIMS, manifests.claim("shared"))
    for name in ("notebook", "viewer"):
        await steps.create(kinds.PODS, manifests.pod(name, resourceClaimName="shared"))
    for name in ("notebook", "viewer"):
        await steps.runs(name, "a GPU", *drivers.GPUS)
    steps.check("they share it", board.held_by("notebook") == board.held_by("viewer"))
    await steps.report(f"notebook and viewer use the same claim, so they share {board.held_by('viewer')[0]}.")


async def _waiting(steps: "_Steps") -> None:
    board, taken = steps.board, steps.board.held_by("train")
    await steps.create(kinds.PODS, manifests.pod("batch", resourceClaimTemplateName="one-gpu"))
    await steps.waits("batch")
    await steps.report(f"batch asked for any GPU and has to wait: {board.why_pending('batch')}")
    await steps.delete(kinds.PODS, "train")
    await steps.until("train is gone", lambda: not board.phase("train"))
    await steps.runs("batch", "the GPU that train had", *taken)
    await steps.report(f"train was deleted, and batch got {taken[0]} immediately.")


async def _still_waiting(steps: "_Steps") -> None:
    await steps.create(kinds.PODS, manifests.pod("render", resourceClaimTemplateName="large-gpu"))
    await steps.waits("render")
    await steps.report("render needs 80Gi, but infer has the only GPU of that size. So render is waiting.")


class _Steps:
    """Create and delete objects, and wait for what the board should show."""

    def __init__(self, cluster: Cluster, board: Board, pause: Pause) -> None:
        self.board = board
        self._cluster = cluster
        self._pause = pause

    async def report(self, text: str) -> None:
        self.board.note(text)
        await self._pause()

    async def create(self, resource: Resource, document: Document) -> None:
        await self._cluster.create(resource, document, document["metadata"].get("namespace", ""))

    async def delete(self, resource: Resource, name: str) -> None:
        await self._cluster.delete(resource, name, manifests.NAMESPACE)

    async def runs(self, pod: str, what: str, *devices: str) -> None:
        """Wait until the pod runs with one of these devices."""
        board = self.board
        await self.until(
            f"{pod} runs with {what}",
            lambda: board.phase(pod) == "Running" and len(held := board.held_by(pod)) == 1 and held[0] in devices,
        )

    async def waits(self, pod: str) -> None:
        """Wait until an event reports why the pod is pending."""
        board = self.board
        await self.until(f"an event reports why {pod} is pending", lambda: board.why_pending(pod))
        self.check(f"{pod} is pending", board.phase(pod) == "Pending" and not board.held_by(pod))

    async def until(self, expectation: str, met: Callable[[], object]) -> None:
        with anyio.move_on_after(PATIENCE):
            await self.board.until(met)
        self.check(expectation, met())

    def check(self, expectation: str, met: object) -> None:
        if not met:
            raise Unavailable(f"the demo expected this within {PATIENCE:g} s, and it did not happen: {expectation}")


def _place() -> str:
    """Return the usual directory for temporary files, or /tmp if the path of a socket below it would be too long."""
    usual = tempfile.gettempdir()
    fits = longest_socket_path(Path(usual) / "dv12345678") <= socket_paths.MAX_BYTES
    return usual if fits else "/tmp"


@asynccontextmanager
async def _node(root: Path, board: Board) -> AsyncIterator[Cluster]:
    """Run the node, and feed the board from its API."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(embedded(Config(root=root, node_name=manifests.NODE)))
        connection = kubeconfig.connection([root / "kubeconfig"])
        cluster = await stack.enter_async_context(connected(connection, Settings(qps=0)))
        for resource in _WATCHED:
            informer = Informer(cluster, resource, lambda document: document)
            informer.on_change(partial(board.see, resource.kind.kind))
            await stack.enter_async_context(running(informer.run))
        await stack.enter_async_context(running(partial(_read_views, cluster, board)))
        yield cluster


async def _read_views(cluster: Cluster, board: Board, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """A part: read which pod holds which device after each change of an object, as these views cannot be watched."""
    task_status.started()
    seen = 0
    while True:
        seen = await board.object_changes.after(seen)
        devices, holders = await cluster.list(_DEVICES), await cluster.list(_HOLDERS)
        board.hold(devices.items, holders.items)
