"""The load of bench/churn.py: pods that come and go on one node, with a device plugin and a DRA driver beside it.

A third of the pods requests a device of the plugin, a sixth has a claim from a template, the others request nothing.
"""

import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from bench._schedule_http import Connection, Target, connected

from devlet.testing import builders
from devlet.testing.embedded import EmbeddedApi
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import FakeDraDriver

PODS = "/api/v1/namespaces/default/pods"
WRITERS = 16
_CREATORS, _DELETERS = 4, 4  # concurrent clients while pods come and go
STALL = 120.0  # seconds without a change of any pod, after which no more changes are expected
_RESOURCE = "vendor.com/gpu"
_TEMPLATE = "one-device"
_DEVICES_PER_SLICE = 128
_EVENT_TYPES = ("ADDED", "MODIFIED", "DELETED")

Document = dict[str, Any]
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


def target_of(api: EmbeddedApi) -> Target:
    return Target(api.endpoint, api.ca_file, api.token, api.kubeconfig)


@asynccontextmanager
async def drivers(root: Path, devices: int) -> AsyncIterator[None]:
    """Run a device plugin and a DRA driver that register again whenever devlet has restarted."""
    plugin = FakeDevicePlugin(root / "device-plugins", _RESOURCE, devices, follow=True)
    driver = FakeDraDriver(root, builders.DRIVER)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(plugin)
        await stack.enter_async_context(driver)
        yield


async def publish(target: Target, node: str, devices: int) -> None:
    """Create the class, the template and the slices of the driver."""
    slices = -(-devices // _DEVICES_PER_SLICE)
    async with connected(target) as connection:
        api = "/apis/resource.k8s.io/v1"
        await connection.post(f"{api}/deviceclasses", _encode(builders.device_class()))
        await connection.post(f"{api}/namespaces/default/resourceclaimtemplates", _encode(builders.template(_TEMPLATE)))
        for number in range(slices):
            names = [f"gpu-{number}-{i}" for i in range(_DEVICES_PER_SLICE)]
            slice_ = builders.resource_slice(node, names, slices=slices, name=f"{node}-{number}")
            await connection.post(f"{api}/resourceslices", _encode(slice_))


def pod_body(number: int) -> bytes:
    name = f"pod-{number:06d}"
    if number % 6 == 0:
        return _encode(builders.pod(name, template=_TEMPLATE))
    return _encode(builders.pod(name, limits={_RESOURCE: 1} if number % 3 == 1 else {}))


@dataclass
class Pods:
    """The pods as a watch reports them: which of them run, and how many are gone."""

    target: Target
    running: set[str] = field(default_factory=set)
    gone: int = 0
    failed: int = 0
    _seen: str = ""
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _started: deque[str] = field(default_factory=deque)

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Watch until cancelled. If a stream ends, continue where it stopped."""
        async with connected(self.target) as connection:
            found = await connection.get(f"{PODS}?limit=1")
            self._seen = found["metadata"]["resourceVersion"]
        while True:
            path = f"{PODS}?watch=true&resourceVersion={self._seen}"
            async with connected(self.target) as connection, aclosing(connection.get_lines(path)) as lines:
                async for line in lines:
                    if line:
                        self._see(_decode(line))
                    else:
                        task_status.started()
                        task_status = TASK_STATUS_IGNORED

    async def until_running(self, count: int) -> None:
        await self._until(lambda: len(self.running) >= count)

    async def until_gone(self, count: int) -> None:
        await self._until(lambda: self.gone >= count)

    async def next_running(self) -> str:
        """Return the name of the next pod that runs."""
        await self._until(lambda: bool(self._started))
        return self._started.popleft()

    async def _until(self, holds: Any) -> None:
        while not holds():
            with anyio.move_on_after(STALL) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught:
                raise SystemExit(f"no pod changed within {STALL:g} s: {len(self.running)} run, {self.gone} are gone")

    def _see(self, event: Document) -> None:
        if event["type"] not in _EVENT_TYPES:
            raise SystemExit(f"the watch of the pods failed: {event}")
        pod = event["object"]
        name, self._seen = pod["metadata"]["name"], pod["metadata"]["resourceVersion"]
        phase = pod.get("status", {}).get("phase")
        if event["type"] == "DELETED":
            self.running.discard(name)
            self.gone += 1
        elif phase == "Failed":
            raise SystemExit(f"pod {name} failed: {pod['status'].get('message')}")
        elif phase == "Running" and name not in self.running and "deletionTimestamp" not in pod["metadata"]:
            self.running.add(name)
            self._started.append(name)
        self._changed.set()
        self._changed = anyio.Event()


async def churn(pods: Pods, rate: float, seconds: float, alive: int) -> int:
    """Create pods at that rate, and delete each when `alive` younger ones run. Return how many were created."""
    target, count = pods.target, 0
    end = time.perf_counter() + seconds
    async with anyio.create_task_group() as deleting:
        for _ in range(_DELETERS):
            deleting.start_soon(_delete_oldest, pods, alive // _DELETERS)
        async with anyio.create_task_group() as tasks:
            send, receive = anyio.create_memory_object_stream[int](float("inf"))
            for _ in range(_CREATORS):
                tasks.start_soon(_create, target, receive.clone())
            began = time.perf_counter()
            while (now := time.perf_counter()) < end:
                while count < (now - began) * rate:
                    send.send_nowait(count)
                    count += 1
                await anyio.sleep(0.02)
            send.close()
        await pods.until_running(1)
        deleting.cancel_scope.cancel()
    return count


async def _create(target: Target, numbers: Any) -> None:
    async with connected(target) as connection:
        async for number in numbers:
            await connection.post(PODS, pod_body(number))


async def _delete_oldest(pods: Pods, alive: int) -> None:
    waiting: deque[str] = deque()
    async with connected(pods.target) as connection:
        while True:
            waiting.append(await pods.next_running())
            if len(waiting) > alive:
                await connection.delete(f"{PODS}/{waiting.popleft()}")


async def fill(target: Target, count: int) -> None:
    await _share(target, [pod_body(number) for number in range(count)], _post)


async def delete_each(target: Target, names: Sequence[str]) -> None:
    """Delete the pods with one request each, from 16 clients."""
    await _share(target, names, _delete)


async def delete_all(target: Target) -> None:
    """Delete all pods with one request."""
    async with connected(target) as connection:
        await connection.delete(PODS)


async def _share(target: Target, work: Sequence[Any], act: Any) -> None:
    left = iter(work)

    async def writer() -> None:
        async with connected(target) as connection:
            for each in left:
                await act(connection, each)

    async with anyio.create_task_group() as tasks:
        for _ in range(WRITERS):
            tasks.start_soon(writer)


async def _post(connection: Connection, body: bytes) -> None:
    await connection.post(PODS, body)


async def _delete(connection: Connection, name: str) -> None:
    await connection.delete(f"{PODS}/{name}")
