"""A gRPC server on a unix socket whose answers a test sets, by method path and in bytes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import grpc
import pytest

from devlet.plugins.channels import target

Context = grpc.aio.ServicerContext[bytes, bytes]
Answer = Callable[[bytes, Context], Awaitable[bytes]]
Stream = Callable[[bytes, Context], AsyncIterator[bytes]]


class GrpcServer(grpc.GenericRpcHandler):
    """`unary` and `streams` are by path; other methods are Unimplemented. `calls` are the requests in order."""

    def __init__(self, path: Path, options: list[tuple[str, Any]]) -> None:
        self.path = path
        self.unary: dict[str, bytes | Answer] = {}
        self.streams: dict[str, Stream] = {}
        self.calls: list[tuple[str, bytes]] = []
        self._options = options
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        self._server = grpc.aio.server(options=self._options)
        self._server.add_generic_rpc_handlers([self])
        assert self._server.add_insecure_port(target(self.path))
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            with anyio.CancelScope(shield=True):
                await self._server.stop(None)
            self._server = None

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        path = str(details.method)
        if (answer := self.unary.get(path)) is not None:
            return grpc.unary_unary_rpc_method_handler(self._answer(path, answer))
        if (stream := self.streams.get(path)) is not None:
            return grpc.unary_stream_rpc_method_handler(stream)
        return None

    def _answer(self, path: str, answer: bytes | Answer) -> Any:
        async def handle(request: bytes, context: Context) -> bytes:
            self.calls.append((path, request))
            return answer if isinstance(answer, bytes) else await answer(request, context)

        return handle


Serve = Callable[..., AbstractAsyncContextManager[GrpcServer]]


@pytest.fixture
def serve() -> Serve:
    @asynccontextmanager
    async def serving(path: Path, *, options: Sequence[tuple[str, Any]] = ()) -> AsyncIterator[GrpcServer]:
        server = GrpcServer(path, list(options))
        await server.start()
        try:
            yield server
        finally:
            await server.stop()

    return serving
