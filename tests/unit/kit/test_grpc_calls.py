from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.kit.grpc_calls import answered
from devlet.plugins.channels import target
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio

OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"

Method = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]


@pytest.fixture
async def plugin(root: Path) -> AsyncIterator[FakeDevicePlugin]:
    async with FakeDevicePlugin(root) as plugin:
        yield plugin


@pytest.fixture
async def ask(plugin: FakeDevicePlugin) -> AsyncIterator[Method]:
    async with grpc.aio.insecure_channel(target(plugin.path)) as channel:
        yield channel.unary_unary(OPTIONS)


async def test_the_answer_is_returned(ask: Method) -> None:
    assert await answered(ask(b"")) == b""


async def test_an_error_is_raised(plugin: FakeDevicePlugin, ask: Method) -> None:
    plugin.fail("GetDevicePluginOptions", "RESOURCE_EXHAUSTED", "no more")
    with pytest.raises(grpc.aio.AioRpcError, match="no more"):
        await answered(ask(b""))


@pytest.mark.parametrize("trial", range(5))
async def test_a_cancel_scope_ends_where_it_was_opened(plugin: FakeDevicePlugin, ask: Method, trial: int) -> None:
    plugin.hang("GetDevicePluginOptions")
    call = ask(b"")
    with deadline(), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def cancel() -> None:
                await plugin.until_asked("GetDevicePluginOptions")
                scope.cancel()

            tasks.start_soon(cancel)
            await answered(call)
    assert scope.cancelled_caught
    assert call.cancelled()
