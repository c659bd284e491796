"""The connection to one device plugin, as a stream of events.

When the plugin's stream of device lists ends, the plugin is dialled again with back-off. There is no lock, no stop flag
and no reference to a manager: cancelling the scope in which `follow` is iterated closes the connection.

    Connected ──▶ Listed, Listed, … ──▶ Disconnected ──▶ Redialling ──▶ Connected ──▶ …
                                                           │    ▲
                                                           ▼    │
                                                         DialFailed
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from msgspec import Struct

from devlet.errors import PluginError, PluginRefused
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.plugins import device_plugin
from devlet.plugins.device_plugin import DevicePlugin, Offer, connected
from devlet.plugins.devices import Device

__all__ = ["Connected", "DialFailed", "Disconnected", "Event", "Listed", "Redialling", "Settings", "follow"]


@dataclass(frozen=True, slots=True)
class Settings:
    plugin: device_plugin.Settings = field(default=device_plugin.Settings())
    reconnect: Backoff = field(default=Backoff(0.2, 10.0))


class Connected(Struct, frozen=True):
    """The plugin answers calls until the next event that is not `Listed`."""

    plugin: DevicePlugin


class Listed(Struct, frozen=True):
    devices: tuple[Device, ...]


class Disconnected(Struct, frozen=True):
    """The stream of device lists ended. `is_refusal`: the plugin is there, but answered with an error or a bad list."""

    message: str
    is_refusal: bool = False


class Redialling(Struct, frozen=True):
    """The plugin is dialled as soon as the next event is requested."""


class DialFailed(Struct, frozen=True):
    message: str


Event = Connected | Listed | Disconnected | Redialling | DialFailed


async def follow(offer: Offer, clock: Clock, settings: Settings = Settings()) -> AsyncGenerator[Event, None]:
    """Yield what happens to the plugin, without end. The first event is `Connected`; if the plugin cannot be connected
    then, raise `PluginError`."""
    async with connected(offer, settings.plugin) as plugin, aclosing(_session(plugin)) as events:
        async for event in events:
            yield event
    failures = 0
    while True:
        await clock.sleep(settings.reconnect.delay(failures, random.random))
        failures += 1
        yield Redialling()
        try:
            async with connected(offer, settings.plugin) as plugin, aclosing(_session(plugin)) as events:
                async for event in events:
                    if isinstance(event, Listed):
                        failures = 0
                    yield event
        except PluginError as e:
            yield DialFailed(e.message)


async def _session(plugin: DevicePlugin) -> AsyncGenerator[Event, None]:
    yield Connected(plugin)
    end = Disconnected("it ended its device list")
    try:
        async with aclosing(plugin.devices()) as lists:
            async for devices in lists:
                yield Listed(devices)
    except PluginError as e:
        end = Disconnected(e.message, isinstance(e, PluginRefused))
    yield end
