from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from devlet.errors import PluginUnavailable
from devlet.kit.backoff import Backoff
from devlet.kit.clock import SystemClock
from devlet.node.devices.plugin_connection import (
    Connected,
    DialFailed,
    Disconnected,
    Event,
    Listed,
    Redialling,
    Settings,
    follow,
)
from devlet.objects.identifiers import ResourceName
from devlet.plugins import device_plugin
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Options
from devlet.testing.fake_device_plugin import FakeDevicePlugin, numbered
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio

QUICK = Settings(plugin=device_plugin.Settings(dial=0.2), reconnect=Backoff(0.01, 0.05))


def events_of(plugin: FakeDevicePlugin) -> AsyncGenerator[Event, None]:
    return follow(Offer(ResourceName(plugin.resource), plugin.path, plugin.api), SystemClock(), QUICK)


async def until(events: AsyncGenerator[Event, None], kind: type[Event]) -> Event:
    async for event in events:
        if isinstance(event, kind):
            return event
    raise AssertionError("the events ended")


async def test_a_plugin_is_connected_and_each_of_its_lists_is_an_event(root: Path) -> None:
    with deadline():
        async with (
            FakeDevicePlugin(root, options=Options(pre_start=True)) as plugin,
            aclosing(events_of(plugin)) as events,
        ):
            first = await anext(events)
            assert isinstance(first, Connected) and first.plugin.options.pre_start
            assert await anext(events) == Listed(numbered(2))
            plugin.set_devices(3)
            assert await anext(events) == Listed(numbered(3))


async def test_a_plugin_that_cannot_be_connected_at_first_is_an_error(root: Path) -> None:
    absent = Offer(ResourceName("vendor.com/gpu"), root / "absent.sock")
    with pytest.raises(PluginUnavailable):
        await anext(follow(absent, SystemClock(), QUICK))


async def test_a_plugin_whose_stream_ends_is_dialled_again(root: Path) -> None:
    with deadline():
        async with FakeDevicePlugin(root) as plugin, aclosing(events_of(plugin)) as events:
            await until(events, Listed)
            plugin.end_streams()
            seen = [await anext(events) for _ in range(4)]
    assert [type(event) for event in seen] == [Disconnected, Redialling, Connected, Listed]
    assert isinstance(seen[0], Disconnected) and not seen[0].is_refusal


async def test_an_error_of_the_plugin_differs_from_the_end_of_its_process(root: Path) -> None:
    with deadline():
        async with FakeDevicePlugin(root) as plugin, aclosing(events_of(plugin)) as events:
            await until(events, Listed)
            plugin.end_streams("INTERNAL", "no bus")
            end = await anext(events)
    assert isinstance(end, Disconnected) and end.is_refusal and "no bus" in end.message


async def test_a_plugin_that_is_away_is_dialled_until_it_is_back(root: Path) -> None:
    with deadline():
        async with FakeDevicePlugin(root) as plugin, aclosing(events_of(plugin)) as events:
            await until(events, Listed)
            await plugin.stop()
            await until(events, DialFailed)
            assert await until(events, Redialling) == Redialling()
            await plugin.start()
            await until(events, Connected)
            assert await anext(events) == Listed(numbered(2))


async def test_closing_the_events_closes_the_connection(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin:
        async with aclosing(events_of(plugin)) as events:
            first = await anext(events)
            await until(events, Listed)
        assert isinstance(first, Connected)
        with pytest.raises(PluginUnavailable, match="has been stopped"):
            await first.plugin.allocate([])
