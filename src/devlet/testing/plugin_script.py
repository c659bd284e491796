"""Record the calls of a fake plugin, and make it misbehave.

    script.fail("Allocate", "INTERNAL", "out of order")    every Allocate from now on is answered with that error
    script.hang("Allocate")                                 … with nothing
    script.answer("Allocate", b"")                          … with these bytes, whatever was asked
    script.recover("Allocate")                              … as it should be

A method is named by its last part. What was asked is in `calls`, in the order in which it arrived.
"""

from dataclasses import dataclass, field

import anyio
import grpc

from devlet.kit.changes import Changes
from devlet.testing.spelling import status_code

__all__ = ["Call", "Script"]

Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the devices that it named, and the other arguments of GetPreferredAllocation (`ids` are the available
    ones)."""

    method: str
    ids: tuple[str, ...] = ()
    must_include: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Failure:
    code: grpc.StatusCode
    text: str


@dataclass(frozen=True, slots=True)
class _Hang:
    released: anyio.Event = field(default_factory=anyio.Event)


class Script:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._faults: dict[str, _Failure | _Hang | bytes] = {}
        self._changes = Changes()

    def fail(self, method: str, code: str = "INTERNAL", text: str = "told to fail") -> None:
        """Answer with an error; `code` is the name of a gRPC status."""
        self._set(method, _Failure(status_code(code), text))

    def hang(self, method: str) -> None:
        """Do not answer until `recover`."""
        self._set(method, _Hang())

    def answer(self, method: str, message: bytes) -> None:
        """Answer with a serialised message, valid or not."""
        self._set(method, message)

    def recover(self, method: str) -> None:
        """End the fault of a method; calls that hang are answered now."""
        fault = self._faults.pop(method, None)
        if isinstance(fault, _Hang):
            fault.released.set()

    def asked(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    async def until_asked(self, method: str, times: int = 1) -> list[Call]:
        """Wait until it was called `times` times."""
        await self._changes.until(lambda: len(self.asked(method)) >= times)
        return self.asked(method)

    def record(self, call: Call) -> None:
        self.calls.append(call)
        self._changes.notify()

    async def act(self, method: str, context: Context) -> bytes | None:
        """Carry out a fault. Return None to give the right answer."""
        match self._faults.get(method):
            case _Failure(code, text):
                await context.abort(code, text)
            case _Hang(released):
                await released.wait()
            case bytes(message):
                return message
        return None

    def _set(self, method: str, fault: _Failure | _Hang | bytes) -> None:
        self.recover(method)
        self._faults[method] = fault
