"""Device plugins that crash, leak or cannot be restarted. See `faulty_device_plugin`."""

import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import anyio
import grpc

from devlet.plugins.channels import target
from devlet.plugins.devices import Grant
from devlet.testing import fake_plugin_services as services
from devlet.testing.plugin_script import Call, Context
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb
from tests.support.mutants.sound_device_plugin import SoundDevicePlugin

__all__ = ["BUGS"]

Plugin = SoundDevicePlugin


class DiesOfCancellation(Plugin):
    """Exit when a call is cancelled."""

    async def act(self, method: str, context: Context) -> bytes | None:
        try:
            await anyio.sleep(0.05 if method == "Allocate" else 0)
        except anyio.get_cancelled_exc_class():
            os._exit(3)
        return await super().act(method, context)


class DiesOfHangups(Plugin):
    """Exit when a stream is closed early."""

    async def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        try:
            async for message in super().lists(first, context):
                yield message
        finally:
            os._exit(3)


class TakesAnything(Plugin):
    """Report success for every call of `method`."""

    method = ""

    async def start(self) -> None:
        self._server = services.server(self, watched=False, first=[_Success(self.method)])
        self._server.add_insecure_port(target(self.path))
        await self._server.start()


class _Success(grpc.GenericRpcHandler):
    """A gRPC handler that reports success for a method without reading the request."""

    def __init__(self, method: str) -> None:
        self._method = method

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        async def answer(blob: bytes, context: Context) -> bytes:
            granted = [pb.ContainerAllocateResponse()]
            return pb.AllocateResponse(container_responses=granted).SerializeToString()

        if handler_call_details.method.endswith(self._method):
            return grpc.unary_unary_rpc_method_handler(answer)
        return None


class TakesGarbage(TakesAnything):
    """Report success for requests that cannot be decoded."""

    method = "/Allocate"


class TakesAnyMethod(TakesAnything):
    """Implement a method that does not exist."""

    method = "/NoSuchMethod"


class OtherFields(Plugin):
    """Return a field that v1beta1 does not have."""

    def record(self, call: Call) -> None:
        self.answer("GetDevicePluginOptions", self._options_of_tomorrow())
        super().record(call)

    def _options_of_tomorrow(self) -> bytes:
        options = pb.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)
        return options.SerializeToString() + b"\x78\x01"  # field 15


class LeaksCalls(Plugin):
    """Leak a file descriptor for each call."""

    def record(self, call: Call) -> None:
        os.open("/", os.O_RDONLY)
        super().record(call)


class Talks(Plugin):
    """Write to the log without pause."""

    async def following(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        task_status.started()
        while True:
            sys.stderr.write("nothing has happened\n" * 4_000)
            await anyio.sleep(0.01)


class StumblesOverSocket(Plugin):
    """Fail to start if its socket exists."""

    async def start(self) -> None:
        if self.path.exists():
            await anyio.sleep_forever()
        await super().start()


class _Marked(Plugin):
    """Write a file below the root while it works."""

    @property
    def mark(self) -> Path:
        return self.directory.parent / "mark"


class KeepsBooks(_Marked):
    """Record allocations and refuse to allocate the devices again after a restart."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._taken = self.mark.read_text().split() if self.mark.exists() else []

    def granted(self, ids: Sequence[str]) -> Grant:
        if taken := [id for id in ids if id in self._taken]:
            raise LookupError(f"in use: {', '.join(taken)}")
        self.mark.write_text(" ".join(ids))
        return super().granted(ids)


class HalfWritten(_Marked):
    """Fail to allocate if a lock of a killed process exists."""

    async def act(self, method: str, context: Context) -> bytes | None:
        if method == "Allocate":
            if self.mark.exists() and self._locked == 0:
                await context.abort(grpc.StatusCode.INTERNAL, f"{self.mark} is locked")
            self._locked += 1
            self.mark.touch()
            await anyio.sleep(0.05)
            self._locked -= 1
            if not self._locked:
                self.mark.unlink()
        return await super().act(method, context)

    _locked = 0


class ForgetsAllocations(Plugin):
    """Answer PreStartContainer only for allocations of this process."""

    def record(self, call: Call) -> None:
        self.recover("PreStartContainer")
        if not self.asked("Allocate"):
            self.fail("PreStartContainer", "NOT_FOUND", "nothing was allocated")
        super().record(call)


class DeafToSignals(Plugin):
    """Ignore SIGTERM."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])


class LeavesSocket(Plugin):
    """Leave a dead socket behind when it exits."""

    async def __aexit__(self, *exc: Any) -> None:
        await super().__aexit__(*exc)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(self.path))


class LeavesFile(Plugin):
    """Leave a file in the kubelet's directory."""

    async def start(self) -> None:
        (self.directory / "led.state").touch()
        await super().start()


class WaitsForStreams(Plugin):
    """Exit only after all streams have ended."""

    async def __aexit__(self, *exc: Any) -> None:
        await self.until_streams(0)
        await super().__aexit__(*exc)


class StopsForGood(_Marked):
    """Refuse to start again after it was stopped."""

    async def register(self, **said: Any) -> None:
        if self.mark.exists():
            await anyio.sleep_forever()
        await super().register(**said)

    async def __aexit__(self, *exc: Any) -> None:
        self.mark.touch()
        await super().__aexit__(*exc)


BUGS: dict[str, type[SoundDevicePlugin]] = {
    "DP-CALL-1": DiesOfCancellation,
    "DP-CALL-2": DiesOfHangups,
    "DP-CALL-3": TakesGarbage,
    "DP-CALL-4": TakesAnyMethod,
    "DP-CALL-5": OtherFields,
    "DP-CALL-6": LeaksCalls,
    "DP-CALL-7": Talks,
    "DP-KILL-1": StumblesOverSocket,
    "DP-KILL-3": KeepsBooks,
    "DP-KILL-4": HalfWritten,
    "DP-KILL-5": ForgetsAllocations,
    "DP-STOP-1": DeafToSignals,
    "DP-STOP-2": LeavesSocket,
    "DP-STOP-3": LeavesFile,
    "DP-STOP-4": WaitsForStreams,
    "DP-STOP-5": StopsForGood,
}
