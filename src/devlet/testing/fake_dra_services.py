"""The gRPC side of a fake DRA driver: which methods it has right now, and what happens in a call.

What is answered is decided elsewhere (`fake_dra_driver`, `dra_script`), its form is in `fake_dra_messages`. Methods are
looked up by their literal path in each call, so a driver may gain and lose services while it runs; what it does not
have is Unimplemented.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing
from typing import Any, Protocol

import anyio
import grpc

from devlet.plugins.dra import ClaimProblem, HealthService, Service
from devlet.testing import fake_dra_messages as messages
from devlet.testing.dra_script import GET_INFO, NOTIFY, PREPARE, WATCH, Answers, Call, Context
from devlet.wire.pluginregistration import api_pb2 as pb

__all__ = ["Driver", "dra_service", "registration_service"]

Unary = Callable[[bytes, Context], Awaitable[bytes]]
Work = Callable[[], Awaitable[bytes | ClaimProblem]]

_REGISTRATION = "/pluginregistration.Registration/"


class Driver(Protocol):
    """The methods of the fake that the services call."""

    services: Sequence[Service]
    health_services: Sequence[HealthService]

    def record(self, call: Call) -> AbstractContextManager[None]: ...
    async def act(self, call: Call, context: Context, cut: Callable[[], None], *, after: bool) -> bytes | None: ...
    async def prepare(self, call: Call) -> Answers: ...
    async def unprepare(self, call: Call) -> Answers: ...
    def health_lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]: ...
    def info(self) -> pb.PluginInfo: ...
    def notified(self, registered: bool, error: str) -> None: ...


def registration_service(driver: Driver, cut: Callable[[], None]) -> grpc.GenericRpcHandler:
    """Return the registration service. `cut` closes the connections of the socket on which it is served."""
    return _Handler(_Registration(driver, cut).find)


def dra_service(driver: Driver, cut: Callable[[], None]) -> grpc.GenericRpcHandler:
    return _Handler(_Dra(driver, cut).find)


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, find: Callable[[str], Any]) -> None:
        self._find = find

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        return self._find(handler_call_details.method)


class _Service:
    def __init__(self, driver: Driver, cut: Callable[[], None]) -> None:
        self.driver = driver
        self._cut = cut

    async def answer(self, call: Call, context: Context, work: Work) -> bytes:
        with self.driver.record(call):
            wrong = await self.driver.act(call, context, self._cut, after=False)
            if wrong is not None:
                return wrong
            right = await work()
            wrong = await self.driver.act(call, context, self._cut, after=True)
            if wrong is not None:
                return wrong
            if isinstance(right, ClaimProblem):
                await context.abort(grpc.StatusCode.UNKNOWN, right.message)
            return right

    async def act(self, call: Call, context: Context) -> bytes | None:
        return await self.driver.act(call, context, self._cut, after=False)


class _Registration(_Service):
    def find(self, path: str) -> Any:
        method: Unary | None = {
            f"{_REGISTRATION}{GET_INFO}": self._get_info,
            f"{_REGISTRATION}{NOTIFY}": self._notify,
        }.get(path)
        return method and grpc.unary_unary_rpc_method_handler(method)

    async def _get_info(self, blob: bytes, context: Context) -> bytes:
        async def work() -> bytes:
            return self.driver.info().SerializeToString()

        return await self.answer(_call(GET_INFO, f"{_REGISTRATION}{GET_INFO}"), context, work)

    async def _notify(self, blob: bytes, context: Context) -> bytes:
        status = pb.RegistrationStatus.FromString(blob)

        async def work() -> bytes:
            self.driver.notified(status.plugin_registered, status.error)
            return b""

        return await self.answer(_call(NOTIFY, f"{_REGISTRATION}{NOTIFY}", text=status.error), context, work)


class _Dra(_Service):
    def find(self, path: str) -> Any:
        if method := messages.method_of(path, self.driver.services):
            return grpc.unary_unary_rpc_method_handler(self._claims(method))
        for service in self.driver.health_services:
            if messages.health_path(service) == path:
                return grpc.unary_stream_rpc_method_handler(self._health(service))
        return None

    def _claims(self, method: messages.Method) -> Unary:
        async def handle(blob: bytes, context: Context) -> bytes:
            call = _call(method.name, method.path, messages.claims_of(method, blob), service=method.service)

            async def work() -> bytes | ClaimProblem:
                do = self.driver.prepare if method.name == PREPARE else self.driver.unprepare
                return messages.encode(method, await do(call))

            return await self.answer(call, context, work)

        return handle

    def _health(self, service: HealthService) -> Callable[[bytes, Context], AsyncIterator[bytes]]:
        async def handle(blob: bytes, context: Context) -> AsyncIterator[bytes]:
            call = _call(WATCH, messages.health_path(service), service=service)
            with self.driver.record(call):
                wrong = await self.act(call, context)
                async with aclosing(self.driver.health_lists(wrong, context)) as lists:
                    async for message in lists:
                        yield message

        return handle


def _call(method: str, path: str, claims: Any = (), *, text: str = "", service: str = "") -> Call:
    return Call(method, claims, text, service, path, anyio.current_time())
