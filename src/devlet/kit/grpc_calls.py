"""Awaiting a gRPC call inside a cancel scope.

When a task that awaits a call of `grpc.aio` is cancelled, gRPC raises a `CancelledError` of its own. The cancel scope
does not recognise that error, so `move_on_after` would let it pass. `answered` waits for the end of the call instead,
and reads the result only when it is there.
"""

from typing import TypeVar

import anyio
import grpc

__all__ = ["answered"]

Request = TypeVar("Request")
Answer = TypeVar("Answer")


async def answered(call: "grpc.aio.UnaryUnaryCall[Request, Answer]") -> Answer:
    """Return the answer to a unary call. Cancels the call if the waiting task is cancelled."""
    done = anyio.Event()
    call.add_done_callback(lambda _: done.set())
    try:
        await done.wait()
    except BaseException:
        call.cancel()
        raise
    with anyio.CancelScope(shield=True):
        answer = await call
    return answer
