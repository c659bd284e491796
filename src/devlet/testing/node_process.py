"""Run a node in a process of its own, which can be killed and started again on the same root.

    async with NodeProcess(root) as node:
        async with FakeDevicePlugin(node.plugins, "vendor.com/gpu", 2, follow=True):
            await node.until_healthy("vendor.com/gpu", 2)
            await node.create(pod("train", {"vendor.com/gpu": 1}))
            await node.kill()
            await node.start()

The devices of a pod are shown in four places: the node's views, the pod's status, the checkpoint, and PodResources. The
first three are read here, so that tests can compare them.
"""

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devlet.kit import diagnostics
from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.documents import Document
from devlet.runtime.none import STATE_FILE
from devlet.state import device_checkpoint
from devlet.testing import builders, warm_start
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.node_api import EVENTS, PODS, VIEWS, NodeApi, devices_in_status

__all__ = ["EVENTS", "NODE", "PODS", "VIEWS", "NodeProcess", "devices_in_status", "plugin_process", "pod"]

NODE = "n1"

_numbers = count(1)


def pod(name: str, limits: Mapping[str, int], *, restart: str = "Always", **more: Any) -> Document:
    """Return a pod of this node with one container. `more` is passed to `builders.pod`, for example `run_for`."""
    return builders.pod(name, limits=limits, node=NODE, restart=restart, **more)


def plugin_process(
    node: "NodeProcess", resource: str, devices: int, *, watched: bool = False
) -> AbstractAsyncContextManager[RunningProcess]:
    """Run a fake device plugin that can be killed. It serves on entry, but may not be registered yet. With `watched` it
    waits to be found instead of registering itself."""
    directory = node.registry if watched else node.plugins
    argv = [sys.executable, "-m", "devlet.testing.fake_device_plugin", "--directory", str(directory)]
    argv += ["--resource", resource, "--devices", str(devices), *(["--registry", str(directory)] if watched else [])]
    log = node.root / f"plugin-{next(_numbers)}.log"
    return process(argv, log=log, name=f"plugin {resource}", ready=line("plugin serving"), start=warm_start.start)


class NodeProcess(NodeApi):
    """A node in a process of its own, which starts when its block is entered. `configuration` is its configuration file
    without the header. Without `control` no scheduler runs."""

    def __init__(
        self, root: Path, configuration: str = "", *, arguments: Sequence[str] = (), control: bool = False
    ) -> None:
        super().__init__(root)
        self.plugins = root / "device-plugins"
        self.registry = root / "plugins_registry"
        self.checkpoint_path = self.plugins / device_checkpoint.FILE_NAME
        self.plugins.mkdir(mode=0o700, exist_ok=True)
        self.registry.mkdir(mode=0o700, exist_ok=True)
        file = root / "devlet.yaml"
        file.write_text(f"apiVersion: devlet.dev/v1alpha1\nkind: Configuration\n{configuration}")
        self._arguments = ["--config", str(file), "--node-name", NODE, *arguments]
        self._control = control
        self._life = AsyncExitStack()
        self._api: EmbeddedApi | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._life.__aexit__(kind, error, trace)

    @property
    def log(self) -> str:
        """The log, including earlier runs."""
        return (self.root / "up.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        assert self._api is not None
        return self._api.pid

    async def start(self) -> None:
        """Start the node, and wait until it is ready."""
        api = embedded_api(self.root, arguments=self._arguments, control=self._control)
        self._api = await self._life.enter_async_context(api)
        self._life.enter_context(diagnostics.attach(f"node {self.root}", self.describe))

    async def stop(self) -> None:
        """Stop the node with SIGTERM, and wait for its end."""
        await self._life.aclose()

    def reboot(self) -> None:
        """Change the boot id that the node reads; call it while the node is stopped."""
        file = self.root / STATE_FILE
        file.write_text(json.dumps(json.loads(file.read_text()) | {"bootID": "the-boot-before"}))

    async def kill(self) -> None:
        """Kill the node with SIGKILL, and wait for its end."""
        assert self._api is not None
        self._api.program.send_signal(signal.SIGKILL)
        await self._api.program.wait()
        await self._life.aclose()

    async def create(self, *documents: Document) -> None:
        for document in documents:
            await self.call("POST", PODS, document)

    async def delete(self, *names: str) -> None:
        """Delete the pods, and wait until they are gone."""
        for name in names:
            await self.call("DELETE", f"{PODS}/{name}")
        await self.until_gone(*names)

    async def holders(self) -> dict[str, Document]:
        """Return the devices of the first container of each pod that has some."""
        return {
            each["metadata"]["name"]: each["status"]["containers"][0] for each in await self.items(f"{VIEWS}/holders")
        }

    def checkpoint(self) -> device_checkpoint.Checkpoint:
        """Return the checkpoint on disk. Raise StateCorrupt if it is damaged."""
        return device_checkpoint.decode(self.checkpoint_path.read_bytes())
