import asyncio

import pytest
from grpc._cython import cygrpc  # type: ignore[attr-defined]

from devlet.testing.grpc_loop import GrpcLoop


def test_it_runs_calls_from_another_thread() -> None:
    async def answer() -> int:
        return await asyncio.to_thread(lambda: 42)

    with asyncio.Runner(loop_factory=GrpcLoop) as runner:
        assert runner.run(answer()) == 42


def test_a_closed_loop_ignores_only_gRPC() -> None:
    loop = GrpcLoop()
    loop.close()
    loop.call_soon_threadsafe(cygrpc._handle_callback_wrapper)
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        loop.call_soon_threadsafe(print)
