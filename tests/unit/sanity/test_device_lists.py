"""What comes on a stream is kept, and how it ended."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from devlet.plugins.channels import connection
from devlet.sanity.device_lists import DeviceListWatch
from devlet.testing.fake_device_plugin import FakeDevicePlugin

pytestmark = pytest.mark.anyio

WITHIN = 60.0


@asynccontextmanager
async def watch(plugin: FakeDevicePlugin) -> AsyncIterator[DeviceListWatch]:
    async with (
        connection("x", plugin.path, within=60, max_message=1 << 20) as dialled,
        anyio.create_task_group() as tasks,
    ):
        made = DeviceListWatch(dialled)
        tasks.start_soon(made.run)
        yield made
        made.close()


async def test_lists_are_counted_and_the_newest_is_kept(root: Path) -> None:
    async with FakeDevicePlugin(root, devices=1) as plugin, watch(plugin) as made:
        assert await made.until(lambda stream: stream.count == 1, WITHIN)
        plugin.set_devices(3)
        assert await made.until(lambda stream: stream.count == 2, WITHIN)
        assert made.newest is not None and len(made.newest.devices) == 3
        assert made.size == made.newest.ByteSize()


async def test_the_end_of_a_stream_is_an_answer(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, watch(plugin) as made:
        await plugin.until_streams(1)
        plugin.end_streams("ABORTED", "enough")
        assert not await made.until(lambda stream: stream.count == 9, WITHIN)
        assert made.ended == "ListAndWatch failed: enough"


async def test_a_list_that_is_not_protobuf_ends_the_stream(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, watch(plugin) as made:
        await plugin.until_streams(1)
        plugin.send(b"\xff")
        await made.until(lambda stream: bool(stream.ended), WITHIN)
        assert "cannot be decoded as v1beta1" in made.ended


async def test_a_stream_is_closed_without_an_error(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, watch(plugin) as made:
        await plugin.until_streams(1)
        made.close()
        await plugin.until_streams(0)
        assert made.ended == ""
