"""What is said of a gRPC server that takes what it should not."""

from typing import Any, cast

import pytest

from devlet.errors import PluginRefused, PluginUnavailable, PluginUnimplemented
from devlet.sanity.check import Failed, Outcome, Passed, Warned
from devlet.sanity.checks.wire import MESSAGE_MAX, fits, known_fields, no_such_method, refuses_garbage
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

pytestmark = pytest.mark.anyio


class Server:
    trouble = "the driver exited with 2"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def raw(self, method: str, blob: bytes) -> bytes:
        if self.error:
            raise self.error
        return b""


async def garbage(server: Server) -> Outcome:
    async def still_good(after: str) -> Outcome:
        return Passed(after)

    return await refuses_garbage(cast(Any, server), server, "Allocate", still_good)


async def test_garbage_is_refused_by_one_that_goes_on() -> None:
    assert await garbage(Server(PluginRefused("x", "no"))) == Passed("a malformed message")
    taken = await garbage(Server())
    assert isinstance(taken, Failed) and "the call succeeded" in taken.seen
    ended = await garbage(Server(PluginUnavailable("x", "it is gone")))
    assert isinstance(ended, Failed) and ended.seen.endswith("Allocate: it is gone; the driver exited with 2")


async def test_a_method_that_is_not_there_is_unimplemented() -> None:
    assert await no_such_method(Server(PluginUnimplemented("x", "no"))) == Passed()
    assert isinstance(await no_such_method(Server(PluginRefused("x", "no"))), Failed)
    assert isinstance(await no_such_method(Server()), Failed)


def test_unknown_fields_are_a_finding() -> None:
    strange = pb.DevicePluginOptions.FromString(b"\x78\x01")
    found = known_fields([pb.Empty(), strange])
    assert found == Warned("DevicePluginOptions has unknown fields: number 15")
    assert known_fields([pb.Empty()]) == Passed()


def test_a_message_that_a_kubelet_does_not_take_is_too_long() -> None:
    assert fits(pb.AllocateResponse(), "it") == Passed()
    found = fits(pb.Device(ID="x" * MESSAGE_MAX), "the list")
    assert isinstance(found, Failed) and found.seen.startswith("the list has 41943")
