"""A gRPC server on a unix socket whose connections can be counted and cut, which gRPC itself does not offer.

    async with anyio.create_task_group() as tasks:
        socket = GrpcSocket(root / "dra.sock")
        socket.add(handler)
        await socket.start(tasks)
        socket.proxy.cut()                      # for example in the middle of a call
        assert socket.proxy.accepted == 1
        await socket.crash()                    # or `stop`; both may be followed by `start`

The server is behind a `FrameProxy` in the same process, on an abstract socket of a random name, which the kernel
forgets when the process dies. It has no mode that could keep other users of the host out: this is for tests.
"""

import uuid
from pathlib import Path

import anyio
import grpc
from anyio.abc import TaskGroup, TaskStatus

from devlet.testing.http2_cuts import FrameProxy

__all__ = ["GrpcSocket"]

_BIG = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


class GrpcSocket:
    """Serves its handlers from `start` to `stop`, any number of times. `proxy` stays the same, and counts over all
    runs. The directory of the path is created if it does not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = f"devlet-{uuid.uuid4().hex}"
        self.proxy = FrameProxy(path, f"\0{self._name}")
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._scope: anyio.CancelScope | None = None
        self._ended = anyio.Event()

    @property
    def is_serving(self) -> bool:
        return self._scope is not None

    def add(self, handler: grpc.GenericRpcHandler) -> None:
        """Add a handler, before the first start."""
        self._handlers.append(handler)

    async def start(self, tasks: TaskGroup) -> None:
        """Start to serve, unless it serves already."""
        if not self.is_serving:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await tasks.start(self._run)

    async def stop(self) -> None:
        """Stop as a process that ends in order: connections are closed and the socket is removed. Idempotent."""
        await self._end(leaves_socket=False)

    async def crash(self) -> None:
        """Stop as a killed process: connections are closed, and a socket without a listener stays."""
        await self._end(leaves_socket=True)

    async def _end(self, *, leaves_socket: bool) -> None:
        if self._scope:
            self.proxy.leaves_socket = leaves_socket
            self._scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._ended.wait()

    async def _run(self, *, task_status: TaskStatus[None]) -> None:
        self.proxy.leaves_socket, self._ended = False, anyio.Event()
        server = grpc.aio.server(options=_BIG)
        server.add_generic_rpc_handlers(self._handlers)
        server.add_insecure_port(f"unix-abstract:{self._name}")
        try:
            with anyio.CancelScope() as self._scope:
                await server.start()
                await self.proxy.run(task_status=task_status)
        finally:
            self._scope = None
            with anyio.CancelScope(shield=True):
                await server.stop(None)
            self._ended.set()
