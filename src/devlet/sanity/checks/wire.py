"""Rules for any gRPC server, whatever its API."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, cast

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from devlet.errors import PluginError, PluginUnavailable, PluginUnimplemented
from devlet.sanity.check import Failed, Outcome, Passed, Warned
from devlet.sanity.rig import Rig

__all__ = ["MESSAGE_MAX", "fits", "known_fields", "no_such_method", "refuses_garbage"]

MESSAGE_MAX = 4 << 20  # bytes, what gRPC receives by default
_GARBAGE = b"\xff" * 16


class Client(Protocol):
    async def raw(self, method: str, blob: bytes) -> bytes: ...


async def refuses_garbage(
    rig: Rig, client: Client, method: str, still_good: Callable[[str], Awaitable[Outcome]]
) -> Outcome:
    """Check that the driver rejects a malformed request; `still_good` checks that it works afterwards."""
    what = f"sixteen bytes 0xff were sent as a request of {method}"
    try:
        await client.raw(method, _GARBAGE)
    except PluginUnavailable as e:
        return Failed(f"{what}: {e.message}; {rig.trouble}".rstrip("; "))
    except PluginError:
        return await still_good("a malformed message")
    return Failed(f"{what}, and the call succeeded")


async def no_such_method(client: Client) -> Outcome:
    try:
        await client.raw("NoSuchMethod", b"")
    except PluginUnimplemented:
        return Passed()
    except PluginError as e:
        return Failed(f"calling a nonexistent method failed with the wrong error, expected UNIMPLEMENTED: {e.message}")
    return Failed("calling a nonexistent method succeeded, expected UNIMPLEMENTED")


def fits(message: Message, what: str) -> Outcome:
    """Check that a kubelet can receive a message."""
    size = message.ByteSize()
    return Failed(f"{what} has {size} bytes, expected at most {MESSAGE_MAX}") if size > MESSAGE_MAX else Passed()


def known_fields(messages: Iterable[Message]) -> Outcome:
    for message in messages:
        if numbers := sorted({unknown.field_number for unknown in cast(Iterable[Any], UnknownFieldSet(message))}):
            name = message.DESCRIPTOR.name
            return Warned(f"{name} has unknown fields: number {', '.join(map(str, numbers))}")
    return Passed()
