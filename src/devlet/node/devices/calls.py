"""Calls to device plugins: limited per resource, and repeated if the plugin registers again during a call."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from devlet.errors import NotAllocated, PluginError, PluginUnavailable
from devlet.kit.clock import Clock
from devlet.node.devices.selection import Ask
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.device_plugin import DevicePlugin
from devlet.plugins.devices import Grant

__all__ = ["AT_ONCE", "PluginCalls"]

T = TypeVar("T")

AT_ONCE = 64  # allocations per resource


class PluginCalls:
    """`plugin` returns the connected plugin of a resource, or raises NotAllocated. `observe` is called with the
    resource and the seconds of each allocation, including the repetitions."""

    def __init__(
        self,
        plugin: Callable[[ResourceName], DevicePlugin],
        clock: Clock,
        observe: Callable[[ResourceName, float], None],
    ) -> None:
        self._plugin = plugin
        self._clock = clock
        self._observe = observe
        self._limiters: dict[ResourceName, anyio.CapacityLimiter] = {}

    async def allocate(self, resource: ResourceName, devices: Sequence[DeviceID]) -> Grant:
        async with self._limiters.setdefault(resource, anyio.CapacityLimiter(AT_ONCE)):
            began = self._clock.monotonic()
            try:
                return await self._call(resource, lambda plugin: plugin.allocate(devices))
            finally:
                self._observe(resource, self._clock.monotonic() - began)

    async def preferred(self, resource: ResourceName, ask: Ask) -> tuple[DeviceID, ...]:
        try:
            return await self._call(
                resource, lambda plugin: plugin.preferred(ask.available, ask.must_include, ask.size)
            )
        except PluginError as e:
            raise NotAllocated(f"device plugin GetPreferredAllocation rpc failed with err: {e.message}") from e

    async def pre_start(self, resource: ResourceName, devices: Sequence[DeviceID]) -> None:
        """Call the plugin once: a pod whose container cannot start is retried anyway."""
        try:
            await self._plugin(resource).pre_start(devices)
        except PluginError as e:
            raise NotAllocated(f"device plugin PreStartContainer rpc failed with err: {e.message}") from e

    async def _call(self, resource: ResourceName, call: Callable[[DevicePlugin], Awaitable[T]]) -> T:
        """Repeat a call that was cut off because the plugin registered again, on the new connection."""
        plugin = self._plugin(resource)
        while True:
            try:
                return await call(plugin)
            except PluginUnavailable:
                if (newer := self._newer(resource, plugin)) is None:
                    raise
                plugin = newer

    def _newer(self, resource: ResourceName, plugin: DevicePlugin) -> DevicePlugin | None:
        try:
            newest = self._plugin(resource)
        except NotAllocated:
            return None
        return newest if newest is not plugin else None
