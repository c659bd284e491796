"""The kubelet's plugin manager, device manager and DRA manager in one process, for which pods are what a test says.

    async with kubelet_plugins(binaries, root, kubeconfig=kubeconfig) as kubelet:
        await until(partial(kubelet.has_driver, "gpu.example.com"))
        await kubelet.prepare(pod)
        (await kubelet.start(pod))["main"].cdi

Nothing runs in pods. They are documents with `metadata.uid`, and claims that they use have to be allocated and reserved
for them. The kubelet has /var/lib/kubelet built in, so it runs in a mount namespace where that is `root`; this needs
root, or a kernel that lets users have namespaces.
"""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from devlet.errors import DevletError
from devlet.kit.processes import Ready, RunningProcess, process
from devlet.objects.documents import Document
from devlet.runtime import kubelet_paths
from tests.support.peers.control_socket import ControlSocket

__all__ = ["DIRECTORIES", "ContainerOptions", "KubeletPlugins", "kubelet_plugins"]

DIRECTORIES = ("device-plugins", "plugins", "plugins_registry")

COMMAND_TIMEOUT = 60.0  # seconds; the kubelet gives a driver 45


class ContainerOptions(Struct, frozen=True):
    """What a container gets of its devices; of mounts and device files the fields of the kubelet's structs."""

    env: Mapping[str, str]
    annotations: Mapping[str, str]
    mounts: Sequence[Mapping[str, Any]] | None = None
    devices: Sequence[Mapping[str, str]] | None = None
    cdi: Sequence[str] | None = None


class KubeletPlugins:
    """InvalidInput has the kubelet's error."""

    def __init__(self, process: RunningProcess, control: Path) -> None:
        self.process = process
        self._do = ControlSocket(process.name, control, timeout=COMMAND_TIMEOUT).do

    async def has_driver(self, name: str) -> bool:
        """Whether the DRA driver is registered."""
        return bool(await self._do("driver", name=name))

    async def capacity(self) -> dict[str, tuple[int, int]]:
        """Of each resource of device plugins: all devices, and the healthy ones."""
        return msgspec.convert(await self._do("capacity"), dict[str, tuple[int, int]])

    async def admit(self, pod: Document) -> None:
        """Give it devices of plugins."""
        await self._do("admit", pod=pod)

    async def prepare(self, pod: Document) -> None:
        await self._do("prepare", pod=pod)

    async def start(self, pod: Document) -> dict[str, ContainerOptions]:
        """What is asked before each start of its containers; the answer by their names."""
        return msgspec.convert(await self._do("start", pod=pod), dict[str, ContainerOptions])

    async def health(self, pod: Document) -> dict[str, list[Document] | None]:
        """What the pod's status would have as `allocatedResourcesStatus`, by name of the container."""
        return msgspec.convert(await self._do("health", pod=pod), dict[str, list[Document] | None])

    async def unprepare(self, pod: Document) -> None:
        await self._do("unprepare", pod=pod)

    async def forget(self, pod: Document) -> None:
        """It is none of the node's any more: its devices are free, and within a minute its claims are unprepared."""
        await self._do("forget", pod=pod)


def kubelet_plugins(
    binaries: Path, root: Path, *, kubeconfig: Path | None = None, node_name: str = "n1"
) -> AbstractAsyncContextManager[KubeletPlugins]:
    """Ready when it takes commands. Without a kubeconfig there is no DRA manager."""
    root = root.absolute()
    for name in DIRECTORIES:
        (root / name).mkdir(parents=True, exist_ok=True)
    control = root / "kubelet.control"
    argv = [
        *[sys.executable, "-m", kubelet_paths.__name__, str(root)],
        *[str((binaries / "kubelet-plugins").absolute()), "node"],
        f"--root={root}",
        f"--node-name={node_name}",
        f"--control={control}",
        *([f"--kubeconfig={kubeconfig.absolute()}"] if kubeconfig else []),
    ]
    return _running(process(argv, name="kubelet-plugins", log=root / "kubelet.log", ready=_obeys(control)), control)


@asynccontextmanager
async def _running(
    program: AbstractAsyncContextManager[RunningProcess], control: Path
) -> AsyncIterator[KubeletPlugins]:
    async with program as running:
        yield KubeletPlugins(running, control)


def _obeys(control: Path) -> Ready:
    async def answers(program: RunningProcess) -> bool:
        try:
            await KubeletPlugins(program, control).capacity()
        except DevletError:
            return False
        return True

    return answers
