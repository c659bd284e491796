"""Call the API of a node through `devlet.sock`, read its views, and wait for changes.

    api = NodeApi(root)
    await api.until_healthy("vendor.com/gpu", 2)
    assert await api.environment("train") == {"GPU": "0"}

The node on that root may run in this process, in a child process, or as `devlet up` in another terminal. Pods are in
the namespace `default`.
"""

import http.client
import json
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio

from devlet.errors import DevletError, NotFound, Unavailable
from devlet.kit import diagnostics
from devlet.objects.documents import Document
from devlet.objects.statuses import error_from_answer
from devlet.testing.waiting import DEADLINE, until

__all__ = ["EVENTS", "MERGE", "PODS", "SLICES", "VIEWS", "NodeApi", "devices_in_status"]

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
VIEWS = "/apis/devlet.dev/v1alpha1"

JSON = "application/json"
MERGE = "application/merge-patch+json"
ANSWER = DEADLINE


_DESCRIBED = (
    PODS,
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    f"{VIEWS}/drivers",
    f"{VIEWS}/plugins",
    EVENTS,
)
_NEWEST = 15  # objects of a kind
_DESCRIBE_TIMEOUT = 5.0  # seconds


def _line(document: Document) -> str:
    """Return a one-line summary of an object for the report of a failed wait."""
    if "reason" in document:
        count, about = document.get("count", 1), document.get("involvedObject", {})
        return f"{count} x {document['reason']} {about.get('kind')} {about.get('name')}: {document.get('message')}"
    return f"{document['metadata']['name']}: {json.dumps(document.get('status', {}))[:600]}"


def devices_in_status(document: Document) -> dict[str, dict[str, str]]:
    """Return the devices of the pod's first container in the pod's status, by resource: id and health."""
    statuses = document.get("status", {}).get("containerStatuses") or [{}]
    return {
        each["name"]: {one["resourceID"]: one["health"] for one in each.get("resources", [])}
        for each in statuses[0].get("allocatedResourcesStatus", [])
    }


class NodeApi:
    def __init__(self, root: Path) -> None:
        self.root = root

    async def call(self, method: str, path: str, body: Document | None = None, type: str = JSON) -> Document:
        """Call the API, and return the document of the answer. Raise a `DevletError` for an error."""
        code, content = await anyio.to_thread.run_sync(self._send, method, path, body, type)
        if code >= 300:
            raise error_from_answer(code, content)
        found: Document = json.loads(content)
        return found

    async def read(self, path: str) -> tuple[int, str]:
        """Call the API, and return the status and the text of the answer."""
        code, content = await anyio.to_thread.run_sync(self._send, "GET", path, None, JSON)
        return code, content.decode()

    def _send(
        self, method: str, path: str, body: Document | None, type: str, *, timeout: float = ANSWER
    ) -> tuple[int, bytes]:
        try:
            with closing(_Connection(self.root / "devlet.sock", timeout)) as connection:
                blob = None if body is None else json.dumps(body).encode()
                connection.request(method, path, blob, {"Content-Type": type})
                response = connection.getresponse()
                return response.status, response.read()
        except (OSError, http.client.HTTPException) as e:
            raise Unavailable(f"{method} {path}: {e}") from e

    def describe(self) -> str:
        """Return the pods, claims, drivers, plugins and newest events, for the report of a wait that failed."""
        try:
            return "\n".join(f"{path}: {self._summary(path)}" for path in _DESCRIBED)
        except Unavailable as e:
            return f"the node does not answer: {e}"

    def _summary(self, path: str) -> str:
        code, content = self._send("GET", path, None, JSON, timeout=_DESCRIBE_TIMEOUT)
        if code >= 300:
            return content.decode(errors="replace")
        return "".join(f"\n  {_line(each)}" for each in json.loads(content)["items"][-_NEWEST:]) or "none"

    # State

    async def items(self, path: str) -> list[Document]:
        found: list[Document] = (await self.call("GET", path))["items"]
        return found

    async def pod(self, name: str) -> Document | None:
        try:
            return await self.call("GET", f"{PODS}/{name}")
        except NotFound:
            return None

    async def pods(self) -> dict[str, Document]:
        return {each["metadata"]["name"]: each for each in await self.items(PODS)}

    async def annotate(self, name: str, annotation: str, value: str) -> None:
        patch = {"metadata": {"annotations": {annotation: value}}}
        await self.call("PATCH", f"{PODS}/{name}", patch, MERGE)

    async def devices(self) -> dict[str, dict[str, Document]]:
        """Return the status of each device of a device plugin, by resource and id."""
        found: dict[str, dict[str, Document]] = {}
        for each in await self.items(f"{VIEWS}/devices"):
            if "resource" in each["spec"]:
                found.setdefault(each["spec"]["resource"], {})[each["spec"]["id"]] = each["status"]
        return found

    async def held(self) -> dict[str, dict[str, set[str]]]:
        """Return the ids of devices by pod and resource, as the devices show them."""
        found: dict[str, dict[str, set[str]]] = {}
        for resource, devices in (await self.devices()).items():
            for id, status in devices.items():
                if (holder := status.get("holder")) is not None:
                    name = holder.get("pod", holder["podUID"])
                    found.setdefault(name, {}).setdefault(resource, set()).add(id)
        return found

    async def slices(self) -> dict[str, Document]:
        return {each["metadata"]["name"]: each for each in await self.items(SLICES)}

    async def plugin_states(self) -> dict[str, Document]:
        """Return the status of each device plugin by the name of its view, such as vendor.com:gpu."""
        return {each["metadata"]["name"]: each["status"] for each in await self.items(f"{VIEWS}/plugins")}

    async def driver_states(self) -> dict[str, Document]:
        """Return the status of each DRA driver, by name."""
        return {each["metadata"]["name"]: each["status"] for each in await self.items(f"{VIEWS}/drivers")}

    async def prepared(self) -> dict[str, Document]:
        """Return the status of each claim that the node knows, by name."""
        found = await self.items(f"{VIEWS}/namespaces/default/preparedclaims")
        return {each["metadata"]["name"]: each["status"] for each in found}

    async def containers(self, pod: str) -> dict[str, Document]:
        """Return the devices of each container of the pod, by name. Raise NotFound if there is no such pod."""
        await self.call("GET", f"{PODS}/{pod}")
        found = [each for each in await self.items(f"{VIEWS}/holders") if each["metadata"]["name"] == pod]
        return {one["name"]: one for each in found for one in each["status"]["containers"]}

    async def environment(self, pod: str, container: str = "main") -> dict[str, str]:
        """Return the environment variables that a container gets with its devices. Raise NotFound if there is no such
        pod or container."""
        spec = (await self.call("GET", f"{PODS}/{pod}"))["spec"]
        names = [each["name"] for each in (*spec.get("initContainers", ()), *spec["containers"])]
        if container not in names:
            raise NotFound(f"pod {pod} has no container {container!r}, only {', '.join(names)}")
        oci = (await self.containers(pod)).get(container, {}).get("oci", {})
        return dict(each.split("=", 1) for each in oci.get("process", {}).get("env", []))

    async def events(self, reason: str = "") -> list[Document]:
        """Return the events with that reason, or all."""
        return [each for each in await self.items(EVENTS) if not reason or each["reason"] == reason]

    # Waiting

    async def until_pod(self, name: str, holds: Callable[[Document], bool], *, within: float = DEADLINE) -> Document:
        """Return the pod as soon as the condition is true. If it does not become true, the error describes the pod."""

        async def read() -> Document | None:
            return await self.pod(name)

        try:
            return await until(read, lambda pod: pod is not None and holds(pod), within=within) or {}
        except AssertionError as e:
            _, mark, running = str(e).partition(diagnostics.MARK)
            text = f"pod {name}: not within {within:g} s; {await self._description(name)}{mark}{running}"
            raise AssertionError(text) from None

    async def _description(self, name: str) -> str:
        """Describe a pod, for an error."""
        try:
            pod = await self.pod(name)
            events = [each for each in await self.events() if each["involvedObject"].get("name") == name]
        except DevletError as e:
            return f"the node does not answer: {e}"
        if pod is None:
            return "there is no such pod"
        conditions = [each for each in pod["status"].get("conditions", []) if each["status"] != "True"]
        lines = [f"{each['type']} is {each['status']}: {each.get('message', '')}" for each in conditions]
        lines += [f"{each['type']} event {each['reason']}: {each['message']}" for each in events]
        return "\n  ".join([f"it is {pod['status'].get('phase')}", *lines])

    async def until_phase(self, name: str, phase: str, *, within: float = DEADLINE) -> Document:
        return await self.until_pod(name, lambda pod: pod.get("status", {}).get("phase") == phase, within=within)

    async def until_gone(self, *pods: str, within: float = DEADLINE) -> None:
        await until(self.pods, lambda found: not found.keys() & set(pods), within=within)

    async def until_healthy(self, resource: str, count: int, *, within: float = DEADLINE) -> None:
        """Wait until the plugin is connected and has `count` healthy devices."""
        name = resource.replace("/", ":")

        def holds(plugins: Mapping[str, Any]) -> bool:
            status = plugins.get(name, {})
            return bool(status.get("state") == "Connected" and status["healthy"] == count)

        await until(self.plugin_states, holds, within=within)

    async def until_event(self, reason: str, text: str = "", *, within: float = DEADLINE) -> Document:
        """Return the first event with that reason whose message contains the text."""

        async def read() -> list[Document]:
            return [each for each in await self.events(reason) if text in each["message"]]

        return (await until(read, within=within))[0]


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ANSWER)
        self.sock.connect(str(self._path))
