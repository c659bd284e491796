"""The same load for every scheduler: all pods are created at once, and a watch reports which of them are bound."""

import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import anyio
import msgspec
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from bench._schedule_http import Target, connected

WRITERS = 30
STALL = 120.0  # seconds without another bound pod, after which no more are expected


@dataclass(frozen=True)
class Load:
    """Durations in seconds since the first create was sent."""

    created: float  # until the last response
    bound: float  # until the watch has reported a node for every pod


async def load(target: Target, namespace: str, bodies: Sequence[bytes], version: str) -> Load:
    """Create all pods and wait until all are bound. `version` is the resource version of the collection before."""
    path, left = f"/api/v1/namespaces/{namespace}/pods", iter(bodies)
    bindings = _Bindings(target, path, version, len(bodies))
    async with anyio.create_task_group() as watching:
        await watching.start(bindings.run)
        start = time.perf_counter()
        async with anyio.create_task_group() as writing:
            for _ in range(WRITERS):
                writing.start_soon(_write, target, path, left)
        created = time.perf_counter()
    return Load(created - start, bindings.complete - start)


async def _write(target: Target, path: str, left: Iterator[bytes]) -> None:
    async with connected(target) as connection:
        for body in left:
            await connection.post(path, body)


class _Meta(msgspec.Struct):
    name: str
    resourceVersion: str


class _Spec(msgspec.Struct):
    nodeName: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_event, _pod = msgspec.json.Decoder(_Event).decode, msgspec.json.Decoder(_Pod).decode


class _Bindings:
    """A watch that ends once the given number of pods has a node. If a stream ends earlier, it continues where it
    stopped."""

    def __init__(self, target: Target, path: str, version: str, wanted: int) -> None:
        self.complete = 0.0  # time.perf_counter() of the last binding
        self._target = target
        self._path = path
        self._version = version
        self._wanted = wanted
        self._bound: set[str] = set()

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        with anyio.CancelScope() as scope:
            await self._follow(scope, task_status)
            task_status = TASK_STATUS_IGNORED
            while len(self._bound) < self._wanted:
                await self._follow(scope, task_status)
        if scope.cancelled_caught:
            raise SystemExit(f"{len(self._bound)} of {self._wanted} pods are bound, and no other within {STALL:g} s")
        self.complete = time.perf_counter()

    async def _follow(self, scope: anyio.CancelScope, task_status: TaskStatus[None]) -> None:
        """Follow one stream until it ends or all pods are bound."""
        path = f"{self._path}?watch=true&resourceVersion={self._version}"
        async with connected(self._target) as connection, aclosing(connection.get_lines(path)) as lines:
            async for line in lines:
                if not line:
                    task_status.started()
                elif self._is_another(line):
                    scope.deadline = anyio.current_time() + STALL
                    if len(self._bound) == self._wanted:
                        return

    def _is_another(self, line: bytes) -> bool:
        event = _event(line)
        if event.type == "ERROR":
            raise SystemExit(f"the watch of the pods failed: {bytes(event.object)!r}")
        pod = _pod(event.object)
        self._version = pod.metadata.resourceVersion
        if not pod.spec.nodeName or pod.metadata.name in self._bound:
            return False
        self._bound.add(pod.metadata.name)
        return True
