from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.plugins.channels import target
from devlet.sdk.server import Context, Methods, SocketServer
from devlet.testing.fake_clock import FakeClock
from devlet.testing.grpc_faults import ANSWER, REQUEST, Call, Faults, Moment
from devlet.testing.grpc_proxy import GrpcProxy
from devlet.testing.waiting import DEADLINE, deadline

pytestmark = pytest.mark.anyio

SAY, COUNT = "/test.Echo/Say", "/test.Echo/Count"


@dataclass
class Echo:
    """A server that answers in capitals, and what it was told."""

    heard: list[bytes] = field(default_factory=list)
    context: Context | None = None

    async def say(self, words: bytes, context: Context) -> bytes:
        self.heard.append(words)
        self.context = context
        if words == b"no":
            await context.abort(grpc.StatusCode.NOT_FOUND, "who?")
        return words.upper()

    async def count(self, words: bytes, context: Context) -> AsyncIterator[bytes]:
        self.heard.append(words)
        for number in range(int(words)):
            yield str(number).encode()

    @property
    def methods(self) -> Methods:
        return Methods(unary={SAY: self.say}, streams={COUNT: self.count})


class Client:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.say: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(SAY)
        self.count: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(COUNT)
        self.unknown: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/test.Echo/Unknown")

    async def code(self, words: bytes, timeout: float = DEADLINE) -> str:
        try:
            await self.say(words, timeout=timeout)
        except grpc.aio.AioRpcError as e:
            return e.code().name
        return "OK"

    async def say_again(self, words: bytes) -> bytes:
        """Call until a connection answers: gRPC may use the broken one once more."""
        with deadline():
            while True:
                try:
                    return await self.say(words, wait_for_ready=True)
                except grpc.aio.AioRpcError as e:
                    if e.code() is not grpc.StatusCode.UNAVAILABLE:
                        raise


@dataclass
class Parts:
    echo: Echo
    proxy: GrpcProxy
    faults: Faults
    client: Client
    clock: FakeClock


@asynccontextmanager
async def dialled(path: Path) -> AsyncIterator[Client]:
    channel = grpc.aio.insecure_channel(target(path), options=[("grpc.use_local_subchannel_pool", 1)])
    try:
        yield Client(channel)
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()


@pytest.fixture
async def parts(root: Path) -> AsyncIterator[Parts]:
    echo, faults, clock = Echo(), Faults(seed=7), FakeClock()
    proxy = GrpcProxy(root / "front.sock", root / "back.sock", faults, clock=clock)
    async with SocketServer(root / "back.sock", [echo.methods]).serving(), proxy, dialled(proxy.front) as client:
        yield Parts(echo, proxy, faults, client, clock)


# Nothing is wrong


async def test_calls_pass_and_are_recorded(parts: Parts) -> None:
    assert await parts.client.say(b"hello") == b"HELLO"
    (call,) = await parts.faults.until_over(SAY)
    assert (call.method, call.socket, call.requests, call.answers) == ("Say", parts.proxy.front, [b"hello"], [b"HELLO"])
    assert (call.status, call.faults, call.request) == ("OK", [], None)


async def test_streams_pass(parts: Parts) -> None:
    assert [message async for message in parts.client.count(b"3")] == [b"0", b"1", b"2"]
    (call,) = await parts.faults.until_over(COUNT)
    assert (call.answers, call.status) == ([b"0", b"1", b"2"], "OK")


async def test_errors_of_the_server_pass(parts: Parts) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await parts.client.say(b"no")
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.NOT_FOUND, "who?")
    assert [call.status for call in parts.faults.calls] == ["NOT_FOUND"]


async def test_a_method_that_the_server_lacks_is_unimplemented(parts: Parts) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await parts.client.unknown(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_metadata_and_deadline_pass(parts: Parts) -> None:
    await parts.client.say(b"x", timeout=60, metadata=(("who", "me"),))
    context = parts.echo.context
    assert context is not None
    assert ("who", "me") in tuple(context.invocation_metadata() or ())
    assert 1 < (context.time_remaining() or 0) <= 62  # gRPC rounds it up on its way


async def test_many_calls_at_once_pass(parts: Parts) -> None:
    said: set[bytes] = set()

    async def say(words: bytes) -> None:
        said.add(await parts.client.say(words))

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(say, f"a{number}".encode())
    assert said == {f"A{number}".encode() for number in range(50)}


async def test_a_server_that_is_not_there_is_unavailable(root: Path) -> None:
    async with GrpcProxy(root / "front.sock", root / "back.sock", Faults()) as proxy, dialled(proxy.front) as client:
        assert await client.code(b"x") == "UNAVAILABLE"


async def test_messages_can_be_replaced_on_the_way(root: Path) -> None:
    async def more(call: Call, message: bytes) -> bytes:
        return message + call.method.encode()

    echo = Echo()
    proxy = GrpcProxy(root / "front.sock", root / "back.sock", Faults(), asking=more, answering=more)
    async with SocketServer(root / "back.sock", [echo.methods]).serving(), proxy, dialled(proxy.front) as client:
        assert await client.say(b"x") == b"XSAYSay"


# Faults


async def test_a_delayed_call_comes_later(parts: Parts) -> None:
    parts.faults.delay("Say", 60.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(parts.client.code, b"x")
        await parts.clock.sleeping(1)
        assert parts.echo.heard == []
        await parts.clock.advance(60)
    assert parts.echo.heard == [b"x"]


async def test_a_delayed_answer_comes_later(parts: Parts) -> None:
    parts.faults.delay("Say", 60.0, after=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(parts.client.code, b"x")
        await parts.clock.sleeping(1)
        assert parts.echo.heard == [b"x"]
        assert parts.faults.over() == []
        await parts.clock.advance(60)


@pytest.mark.parametrize("after", [False, True])
async def test_a_call_that_hangs_is_answered_when_the_fault_ends(parts: Parts, after: bool) -> None:
    rule = parts.faults.hang("Say", after=after)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(parts.client.code, b"x")
        await rule.until_hit()
        assert parts.echo.heard == [b"x"] * after
        assert parts.faults.over() == []
        rule.end()
    assert parts.echo.heard == [b"x"]


@pytest.mark.parametrize("after", [False, True])
async def test_a_call_that_is_dropped_ends_with_the_callers_patience(parts: Parts, after: bool) -> None:
    parts.faults.drop("Say", after=after)
    for patience in (0.2, 2, 20):  # a busy machine takes longer to deliver a call
        assert await parts.client.code(b"x", timeout=patience) == "DEADLINE_EXCEEDED"
        if parts.faults.calls and bool(parts.echo.heard) == after:
            break
    assert set(parts.echo.heard) == ({b"x"} if after else set())
    *_, call = await parts.faults.until_over("Say")
    assert (call.status, call.faults) == ("CANCELLED", ["drop"])


@pytest.mark.parametrize("after", [False, True])
async def test_an_error_replaces_the_servers_answer(parts: Parts, after: bool) -> None:
    parts.faults.error("Say", "RESOURCE_EXHAUSTED", "too much", after=after, times=1)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await parts.client.say(b"x")
    assert (caught.value.code().name, caught.value.details()) == ("RESOURCE_EXHAUSTED", "too much")
    assert parts.echo.heard == [b"x"] * after
    assert await parts.client.say(b"y") == b"Y"


async def test_an_answer_is_corrupted_in_one_bit(parts: Parts) -> None:
    parts.faults.corrupt("Say")
    (said,) = [await parts.client.say(b"x")]
    assert (said[0] ^ ord("X")).bit_count() == 1
    assert parts.faults.calls[0].answers == [b"X"]


async def test_a_request_is_replaced(parts: Parts) -> None:
    parts.faults.corrupt("Say", REQUEST, b"garbage")
    assert await parts.client.say(b"x") == b"GARBAGE"


async def test_each_answer_of_a_stream_can_be_corrupted(parts: Parts) -> None:
    parts.faults.corrupt("Count", to=lambda message: message * 2, skip=1, times=1)
    assert [message async for message in parts.client.count(b"3")] == [b"0", b"11", b"2"]


async def test_the_server_is_called_twice(parts: Parts) -> None:
    parts.faults.duplicate("Say")
    assert await parts.client.say(b"x") == b"X"
    assert parts.echo.heard == [b"x", b"x"]


async def test_a_stream_is_begun_twice(parts: Parts) -> None:
    parts.faults.duplicate("Count")
    assert [message async for message in parts.client.count(b"3")] == [b"0", b"1", b"2"]
    assert parts.echo.heard == [b"3", b"3"]


async def test_an_answer_of_a_stream_comes_twice(parts: Parts) -> None:
    parts.faults.duplicate("Count", ANSWER, times=1)
    assert [message async for message in parts.client.count(b"2")] == [b"0", b"0", b"1"]


async def test_two_calls_are_answered_in_the_other_order(parts: Parts) -> None:
    parts.faults.reorder("Say", within=60)
    said: list[bytes] = []

    async def say(words: bytes) -> None:
        said.append(await parts.client.say(words))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say, b"first")
        await parts.faults.until_asked("Say")
        tasks.start_soon(say, b"second")
    assert said == [b"SECOND", b"FIRST"]


async def test_a_call_without_another_to_reorder_is_answered(parts: Parts) -> None:
    parts.faults.reorder("Say", within=0.05)
    assert await parts.client.say(b"alone") == b"ALONE"


async def test_three_calls_are_answered_in_reverse(parts: Parts) -> None:
    parts.faults.reorder("Say", count=3, within=60)
    said: list[bytes] = []

    async def say(words: bytes) -> None:
        said.append(await parts.client.say(words))

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(say, str(number).encode())
            await parts.faults.until_asked("Say", number + 1)
    assert said == [b"2", b"1", b"0"]


# Disconnections


async def test_a_disconnection_before_a_call_keeps_it_from_the_server(parts: Parts) -> None:
    parts.faults.disconnect("Say", Moment.BEFORE, times=1)
    assert await parts.client.code(b"x") == "UNAVAILABLE"
    assert parts.echo.heard == []
    assert await parts.client.say_again(b"y") == b"Y"
    assert parts.proxy.socket.accepted == 2


async def test_a_disconnection_in_the_middle_comes_after_the_work(parts: Parts) -> None:
    parts.faults.disconnect("Say", Moment.DURING, times=1)
    assert await parts.client.code(b"x") == "UNAVAILABLE"
    assert parts.echo.heard == [b"x"]
    assert await parts.client.say_again(b"y") == b"Y"
    assert [call.status for call in parts.faults.over()] == ["CANCELLED", "OK"]


async def test_a_disconnection_in_the_middle_also_meets_an_error(parts: Parts) -> None:
    parts.faults.disconnect("Say", Moment.DURING, times=1)
    assert await parts.client.code(b"no") == "UNAVAILABLE"


async def test_a_disconnection_after_a_call_comes_after_its_answer(parts: Parts) -> None:
    parts.faults.disconnect("Say", Moment.AFTER, times=1)
    assert await parts.client.say(b"x") == b"X"
    await parts.proxy.socket.until_open(0)
    assert await parts.client.say_again(b"y") == b"Y"
    assert parts.proxy.socket.accepted == 2


async def test_a_disconnection_ends_streams_of_the_same_socket(parts: Parts) -> None:
    parts.faults.hang("Count", after=True, skip=1)
    parts.faults.disconnect("Say")
    stream = parts.client.count(b"2")
    assert await stream.read() == b"0"
    await parts.client.code(b"x")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stream.read()
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


# Occasions


async def test_a_predicate_sees_the_call(parts: Parts) -> None:
    parts.faults.error("*", when=lambda call: call.requests[0] == b"bad")
    assert [await parts.client.code(words) for words in (b"good", b"bad", b"good")] == ["OK", "INTERNAL", "OK"]


async def test_a_predicate_that_fails_is_seen_in_the_record_and_by_the_caller(parts: Parts) -> None:
    parts.faults.error("Say", when=lambda call: bool(call.request.claims))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await parts.client.say(b"x")
    assert "has no attribute 'claims'" in (caught.value.details() or "")
    (call,) = await parts.faults.until_over("Say")
    assert call.status == "UNKNOWN" and "a mistake in the test" in call.faults[0]


async def test_recovery_ends_what_hangs(parts: Parts) -> None:
    hang = parts.faults.hang("Say")
    parts.faults.error("Count")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(parts.client.code, b"x")
        await hang.until_hit()
        parts.faults.recover()
    assert [message async for message in parts.client.count(b"1")] == [b"0"]


# Its life


async def test_it_leaves_no_socket(root: Path) -> None:
    async with GrpcProxy(root / "front.sock", root / "back.sock", Faults()) as proxy:
        assert proxy.front.is_socket()
    assert not proxy.front.exists()


async def test_a_crash_leaves_a_socket_without_listener(root: Path) -> None:
    async with GrpcProxy(root / "front.sock", root / "back.sock", Faults()) as proxy:
        await proxy.crash()
        assert proxy.front.is_socket()
        async with dialled(proxy.front) as client:
            assert await client.code(b"x") == "UNAVAILABLE"


async def test_it_knows_whether_the_server_is_there(parts: Parts) -> None:
    await parts.client.say(b"x")
    assert parts.proxy.is_connected
