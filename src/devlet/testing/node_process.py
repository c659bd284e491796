"""A node as a process of its own, which can be killed and started again on the same root, and be asked what it has.

    async with NodeProcess(root) as node:
        async with FakeDevicePlugin(node.plugins, "vendor.com/gpu", 2, follow=True):
            await node.until_healthy("vendor.com/gpu", 2)
            await node.create(pod("train", {"vendor.com/gpu": 1}))
            await node.kill()
            await node.start()

What a pod holds is said in four places: the node's own views, the pod's status, the checkpoint, and PodResources. The
first three are read here, by name, so that tests can compare them.
"""

import http.client
import json
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio

from devlet.errors import NotFound, Unavailable
from devlet.objects.documents import Document
from devlet.objects.statuses import error_from_answer
from devlet.runtime.none import STATE_FILE
from devlet.state import device_checkpoint
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.processes import RunningProcess, line, process
from devlet.testing.waiting import until

__all__ = ["NODE", "PODS", "NodeProcess", "devices_in_status", "plugin_process", "pod"]

NODE = "n1"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
VIEWS = "/apis/devlet.dev/v1alpha1"

JSON = "application/json"
ANSWER = 30.0  # seconds

_numbers = count(1)


def pod(name: str, limits: Mapping[str, int], *, restart: str = "Always", **annotations: str) -> Document:
    """A pod of this node with one container. `annotations` are those of the runtime: run_for is devlet.dev/run-for."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "annotations": {f"devlet.dev/{key.replace('_', '-')}": value for key, value in annotations.items()},
        },
        "spec": {
            "nodeName": NODE,
            "restartPolicy": restart,
            "containers": [
                {"name": "main", "image": "x", "resources": {"limits": {k: str(v) for k, v in limits.items()}}}
            ],
        },
    }


def devices_in_status(document: Document) -> dict[str, dict[str, str]]:
    """By resource, what the pod's first container has according to the pod's status: id and health."""
    statuses = document.get("status", {}).get("containerStatuses") or [{}]
    return {
        each["name"]: {one["resourceID"]: one["health"] for one in each.get("resources", [])}
        for each in statuses[0].get("allocatedResourcesStatus", [])
    }


def plugin_process(
    node: "NodeProcess", resource: str, devices: int, *, watched: bool = False
) -> AbstractAsyncContextManager[RunningProcess]:
    """A fake device plugin that can be killed. It serves on entry, and may not be registered yet. `watched`: it waits
    to be found instead of registering itself."""
    directory = node.registry if watched else node.plugins
    argv = [sys.executable, "-m", "devlet.testing.fake_device_plugin", "--directory", str(directory)]
    argv += ["--resource", resource, "--devices", str(devices), *(["--registry", str(directory)] if watched else [])]
    log = node.root / f"plugin-{next(_numbers)}.log"
    return process(argv, log=log, name=f"plugin {resource}", ready=line("plugin serving"))


class NodeProcess:
    """`configuration` is what its file has beside the header. Without `control` nobody schedules. Not started before
    its block is entered."""

    def __init__(
        self, root: Path, configuration: str = "", *, arguments: Sequence[str] = (), control: bool = False
    ) -> None:
        self.root = root
        self.plugins = root / "device-plugins"
        self.registry = root / "plugins_registry"
        self.checkpoint_path = self.plugins / "kubelet_internal_checkpoint"
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
        await self._life.aclose()

    @property
    def log(self) -> str:
        """Of all its lives."""
        return (self.root / "up.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        assert self._api is not None
        return self._api.pid

    async def start(self) -> None:
        """Until it says that it is ready."""
        api = embedded_api(self.root, arguments=self._arguments, control=self._control)
        self._api = await self._life.enter_async_context(api)

    async def stop(self) -> None:
        """With SIGTERM, and until it is gone."""
        await self._life.aclose()

    def reboot(self) -> None:
        """While it is stopped: let it find another boot id than before."""
        file = self.root / STATE_FILE
        file.write_text(json.dumps(json.loads(file.read_text()) | {"bootID": "the-boot-before"}))

    async def kill(self) -> None:
        """With SIGKILL, and until it is gone."""
        assert self._api is not None
        self._api.program.send_signal(signal.SIGKILL)
        await self._api.program.wait()
        await self._life.aclose()

    async def call(self, method: str, path: str, body: Document | None = None, type: str = JSON) -> Document:
        """The document of the answer; a `DevletError` if there is none, or it says no."""
        code, content = await anyio.to_thread.run_sync(self._send, method, path, body, type)
        if code >= 300:
            raise error_from_answer(code, content)
        found: Document = json.loads(content)
        return found

    async def read(self, path: str) -> tuple[int, str]:
        """The code and the text of the answer, whatever they are."""
        code, content = await anyio.to_thread.run_sync(self._send, "GET", path, None, JSON)
        return code, content.decode()

    def _send(self, method: str, path: str, body: Document | None, type: str) -> tuple[int, bytes]:
        try:
            with closing(_Connection(self.root / "devlet.sock")) as connection:
                blob = None if body is None else json.dumps(body).encode()
                connection.request(method, path, blob, {"Content-Type": type})
                response = connection.getresponse()
                return response.status, response.read()
        except (OSError, http.client.HTTPException) as e:
            raise Unavailable(f"{method} {path}: {e}") from e

    # What is there

    async def items(self, path: str) -> list[Document]:
        found: list[Document] = (await self.call("GET", path))["items"]
        return found

    async def create(self, *documents: Document) -> None:
        for document in documents:
            await self.call("POST", PODS, document)

    async def annotate(self, name: str, annotation: str, value: str) -> None:
        patch = {"metadata": {"annotations": {annotation: value}}}
        await self.call("PATCH", f"{PODS}/{name}", patch, "application/merge-patch+json")

    async def pod(self, name: str) -> Document | None:
        try:
            return await self.call("GET", f"{PODS}/{name}")
        except NotFound:
            return None

    async def pods(self) -> dict[str, Document]:
        return {each["metadata"]["name"]: each for each in await self.items(PODS)}

    async def delete(self, *names: str) -> None:
        """And wait until they are gone."""
        for name in names:
            await self.call("DELETE", f"{PODS}/{name}")
        await until(self.pods, lambda pods: not pods.keys() & set(names))

    async def devices(self) -> dict[str, dict[str, Document]]:
        """The status of each device, by resource and id."""
        found: dict[str, dict[str, Document]] = {}
        for each in await self.items(f"{VIEWS}/devices"):
            found.setdefault(each["spec"]["resource"], {})[each["spec"]["id"]] = each["status"]
        return found

    async def held(self) -> dict[str, dict[str, set[str]]]:
        """By pod and resource, according to the devices."""
        found: dict[str, dict[str, set[str]]] = {}
        for resource, devices in (await self.devices()).items():
            for id, status in devices.items():
                if (holder := status.get("holder")) is not None:
                    name = holder.get("pod", holder["podUID"])
                    found.setdefault(name, {}).setdefault(resource, set()).add(id)
        return found

    async def holders(self) -> dict[str, Document]:
        """The first container of each pod that has devices."""
        return {
            each["metadata"]["name"]: each["status"]["containers"][0] for each in await self.items(f"{VIEWS}/holders")
        }

    async def plugin_states(self) -> dict[str, Document]:
        """By the name of its view, such as vendor.com:gpu."""
        return {each["metadata"]["name"]: each["status"] for each in await self.items(f"{VIEWS}/plugins")}

    async def events(self, reason: str) -> list[Document]:
        return [each for each in await self.items(EVENTS) if each["reason"] == reason]

    def checkpoint(self) -> device_checkpoint.Checkpoint:
        """As it is on disk. StateCorrupt if it is damaged."""
        return device_checkpoint.decode(self.checkpoint_path.read_bytes())

    # Waiting

    async def until_pod(self, name: str, holds: Callable[[Document], bool], *, within: float = 15.0) -> Document:
        async def read() -> Document | None:
            return await self.pod(name)

        return await until(read, lambda pod: pod is not None and holds(pod), within=within) or {}

    async def until_phase(self, name: str, phase: str, *, within: float = 15.0) -> Document:
        return await self.until_pod(name, lambda pod: pod.get("status", {}).get("phase") == phase, within=within)

    async def until_healthy(self, resource: str, count: int, *, within: float = 15.0) -> None:
        """Until its plugin is connected and has so many healthy devices."""
        name = resource.replace("/", ":")

        def holds(plugins: Mapping[str, Any]) -> bool:
            status = plugins.get(name, {})
            return bool(status.get("state") == "Connected" and status["healthy"] == count)

        await until(self.plugin_states, holds, within=within)

    async def until_event(self, reason: str, text: str = "", *, within: float = 15.0) -> Document:
        """The first event of that reason whose message contains the text."""

        async def read() -> list[Document]:
            return [each for each in await self.events(reason) if text in each["message"]]

        return (await until(read, within=within))[0]


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ANSWER)
        self.sock.connect(str(self._path))
