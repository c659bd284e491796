"""A socket through which gRPC calls reach another one, and on which they meet faults.

    async with GrpcProxy(root / "front.sock", root / "dra.sock", faults) as proxy:
        ...                     # clients use front.sock
        proxy.socket.cut()      # faults of bytes: see `wire_faults`

It serves every method, unary or streaming, without knowing any: messages are passed as bytes, with their metadata,
deadlines and statuses. A call is forwarded when its first message arrives, so a method in which the server sends first
cannot be forwarded. No plugin API has one.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import anyio
import grpc
from anyio.abc import TaskStatus

from devlet.kit.clock import Clock, SystemClock
from devlet.kit.parts import running
from devlet.plugins.channels import dial_options, target
from devlet.testing.fault_acts import (
    Act,
    Corrupt,
    Delay,
    Disconnect,
    Drop,
    Duplicate,
    Error,
    Hang,
    Moment,
    Reorder,
    Turn,
)
from devlet.testing.grpc_faults import Call, Faults, Rule
from devlet.testing.grpc_socket import GrpcSocket
from devlet.testing.http2_cuts import FrameProxy, Place

__all__ = ["GrpcProxy", "Look", "unchanged"]

Context: TypeAlias = grpc.aio.ServicerContext[bytes, bytes]
Look: TypeAlias = Callable[[Call, bytes], Awaitable[bytes]]

BIGGEST = 256 << 20  # bytes of a message
DIAL = 10.0  # seconds

_PLACES = {Moment.DURING: Place.MIDDLE, Moment.AFTER: Place.END}
_OWN = ("grpc-", "user-agent", "content-type", "te", ":")  # metadata that gRPC makes itself


async def unchanged(call: Call, message: bytes) -> bytes:
    return message


class GrpcProxy:
    """A proxy from `front` to `back`, which may be created later. A part (`run`), or an async context manager. `asking`
    and `answering` get each message before any fault, and may return another one."""

    def __init__(
        self,
        front: Path,
        back: Path,
        faults: Faults,
        *,
        asking: Look = unchanged,
        answering: Look = unchanged,
        clock: Clock = SystemClock(),
    ) -> None:
        self.front = front
        self.back = back
        self.faults = faults
        self.asking = asking
        self.answering = answering
        self.clock = clock
        self._server = GrpcSocket(front)
        self._server.add(_Handler(self))
        self._channel: grpc.aio.Channel | None = None
        self._life = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._life.enter_async_context(running(self.run))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._life.aclose()

    @property
    def socket(self) -> FrameProxy:
        """The socket on the side of the clients."""
        return self._server.proxy

    @property
    def channel(self) -> grpc.aio.Channel:
        """The channel to the server."""
        assert self._channel is not None
        return self._channel

    @property
    def is_connected(self) -> bool:
        """Return True if it is connected to the server. Otherwise gRPC tries to connect."""
        return self.channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self._channel = grpc.aio.insecure_channel(target(self.back), options=dial_options(BIGGEST, DIAL))
        try:
            async with anyio.create_task_group() as tasks:
                await self._server.start(tasks)
                task_status.started()
        finally:
            with anyio.CancelScope(shield=True):
                await self._channel.close()

    async def crash(self) -> None:
        """Stop as a killed process: the socket stays, without a listener."""
        await self._server.crash()


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, proxy: GrpcProxy) -> None:
        self._proxy = proxy

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return a handler for a method. Requests are single messages, as in all kubelet protocols. A unary answer is a
        stream of one message."""
        return grpc.unary_stream_rpc_method_handler(partial(self._serve, handler_call_details.method))

    async def _serve(self, path: str, request: bytes, context: Context) -> None:
        call = Call(path, self._proxy.front)
        try:
            await _Exchange(self._proxy, call, request, context).run()
        except grpc.aio.AbortError:
            raise
        except Exception as e:  # of a predicate, or of a function that corrupts: gRPC tells it to the caller
            call.status = grpc.StatusCode.UNKNOWN.name
            call.faults.append(f"a mistake in the test: {e!r}")
            raise
        finally:
            call.status = call.status or grpc.StatusCode.CANCELLED.name
            self._proxy.faults.changes.notify()


class _Exchange:
    """One call through the proxy."""

    def __init__(self, proxy: GrpcProxy, call: Call, request: bytes, context: Context) -> None:
        self._proxy = proxy
        self._call = call
        self._request = request
        self._context = context
        self._twice = False
        self._turns: list[tuple[Rule, Reorder, Turn]] = []

    async def run(self) -> None:
        self._call.requests.append(self._request)
        self._request = await self._proxy.asking(self._call, self._request)
        self._proxy.faults.calls.append(self._call)
        self._proxy.faults.changes.notify()
        for rule in self._proxy.faults.meeting(self._call, after=False):
            await self._before(rule)
        if self._twice:
            await self._ask_in_vain()
        await self._forward()

    # Before the work

    async def _before(self, rule: Rule) -> None:
        match rule.act:
            case Corrupt(change):
                self._request = change(self._request)
            case Duplicate():
                self._twice = True
            case Disconnect():
                self._proxy.socket.cut()
                await anyio.sleep_forever()  # gRPC cancels this when it sees that the connection is gone
            case Reorder() as act:
                self._turns.append((rule, act, act.join()))
            case act:
                await self._hold(rule, act)

    async def _hold(self, rule: Rule, act: Act) -> None:
        match act:
            case Delay(seconds):
                await self._proxy.clock.sleep(seconds)
            case Hang():
                await self._proxy.faults.changes.until(lambda: rule.is_over)
            case Drop():
                await anyio.sleep_forever()
            case Error(code, text):
                await self._refuse(code, text)

    # To the server and back

    async def _ask_in_vain(self) -> None:
        """Make a call whose answer is dropped; a stream is left after its first answer."""
        async with aclosing(self._answers()) as answers:
            with suppress(grpc.aio.AioRpcError):
                await anext(answers, None)

    async def _forward(self) -> None:
        try:
            async with aclosing(self._answers()) as answers:
                async for message in answers:
                    self._call.answers.append(message)
                    await self._answer(await self._proxy.answering(self._call, message))
        except grpc.aio.AioRpcError as e:
            await self._answer_error(e)
        self._call.status = self._call.status or grpc.StatusCode.OK.name

    async def _answers(self) -> AsyncGenerator[bytes, None]:
        """Yield the answers of the server, and raise its error."""
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self._proxy.channel.unary_stream(self._call.path)
        call = method(self._request, timeout=self._context.time_remaining(), metadata=self._metadata())
        try:
            while isinstance(message := await call.read(), bytes):
                yield message
            self._context.set_trailing_metadata(_passed(await call.trailing_metadata()))
        finally:
            call.cancel()

    def _metadata(self) -> grpc.aio.Metadata:
        return _passed(self._context.invocation_metadata() or ())

    # After the work

    async def _answer(self, message: bytes) -> None:
        messages = [message]
        for rule in self._proxy.faults.meeting(self._call, after=True):
            messages = await self._after(rule, messages)
        await self._take_turn()
        for each in messages:
            await self._context.write(each)

    async def _answer_error(self, error: grpc.aio.AioRpcError) -> None:
        """Handle an error that the server returns before any message, which is an answer as well."""
        if not self._call.answers:
            for rule in self._proxy.faults.meeting(self._call, after=True):
                await self._after(rule, [])
            await self._take_turn()
        self._context.set_trailing_metadata(_passed(error.trailing_metadata()))
        await self._refuse(error.code(), error.details() or "")

    async def _after(self, rule: Rule, messages: list[bytes]) -> list[bytes]:
        match rule.act:
            case Corrupt(change):
                return [change(message) for message in messages]
            case Duplicate():
                return messages * 2
            case Disconnect(moment):
                self._proxy.socket.cut_at(_PLACES[moment])
                if moment is Moment.DURING:
                    self._call.status = grpc.StatusCode.CANCELLED.name
            case act:
                await self._hold(rule, act)
        return messages

    async def _take_turn(self) -> None:
        turns, self._turns = self._turns, []
        for rule, act, turn in turns:
            with anyio.move_on_after(act.within):
                await self._proxy.faults.changes.until(partial(_may_go, rule, turn))
            self._pass_turn(turn)

    def _pass_turn(self, turn: Turn) -> None:
        """Release the next call of the group when the client has the answer, as far as can be known."""

        def over(_: object) -> None:
            turn.answered.add(turn.place)
            self._proxy.faults.changes.notify()

        self._context.add_done_callback(over)  # type: ignore[arg-type]  # its stub wants a class

    async def _refuse(self, code: grpc.StatusCode, text: str) -> None:
        self._call.status = code.name
        await self._context.abort(code, text)


def _may_go(rule: Rule, turn: Turn) -> bool:
    return rule.is_over or turn.has_come


def _passed(metadata: Any) -> grpc.aio.Metadata:
    """Return the metadata of the programs, without that of gRPC."""
    return grpc.aio.Metadata(*((key, value) for key, value in metadata if not key.startswith(_OWN)))
