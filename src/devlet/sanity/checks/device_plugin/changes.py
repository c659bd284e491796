"""The device lists that a plugin sends when its devices change, which the command of `--change` causes."""

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.device_lists import DeviceListWatch
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

_HOW = "call /v1beta1.DevicePlugin/ListAndWatch on its socket, change its devices, and print the responses"
_TRIED = 16  # devices, if many are added at once


def _state(watch: DeviceListWatch) -> set[tuple[str, str]]:
    return {(device.ID, device.health) for device in watch.newest.devices} if watch.newest else set()


async def _changed(rig: DevicePluginRig, streams: list[DeviceListWatch]) -> DeviceListWatch | None:
    """Change the devices and return the first stream that reports it. The change affects one resource, but it is not
    known which one."""
    before = [_state(stream) for stream in streams]
    reported: list[DeviceListWatch] = []
    await rig.change_devices()
    async with anyio.create_task_group() as tasks:

        async def listen(stream: DeviceListWatch, known: set[tuple[str, str]]) -> None:
            if await stream.until(lambda watch: _state(watch) != known, rig.settings.wait):
                reported.append(stream)
                tasks.cancel_scope.cancel()

        for stream, known in zip(streams, before, strict=True):
            tasks.start_soon(listen, stream, known)
    return reported[0] if reported else None


async def _started(plugins: list[PluginClient]) -> list[DeviceListWatch]:
    for plugin in plugins:
        await plugin.devices()
    return [plugin.watch for plugin in plugins]


async def _another(rig: DevicePluginRig, plugin: PluginClient) -> DeviceListWatch:
    stream = plugin.follow()
    await stream.until(lambda watch: watch.count > 0, rig.settings.answer)
    return stream


def _unreported(rig: DevicePluginRig, when: str = "after the devices changed") -> Failed:
    return Failed(f"{when}, no new list was sent within {rig.settings.wait:g} s")


@checks.add(
    "DP-CHANGE-1",
    "A change of devices is reported",
    rule="whenever a device changes or disappears, ListAndWatch returns the new list: ListAndWatch",
    how=_HOW,
    fresh=True,
)
async def reported(rig: DevicePluginRig) -> Outcome:
    streams = await _started(rig.plugins)
    return Passed() if await _changed(rig, streams) else _unreported(rig)


@checks.add(
    "DP-CHANGE-2",
    "A change is reported as the whole list",
    rule="ListAndWatchResponse is always the full list, never a difference",
    how=f"{_HOW}; compare it with the first list of a new stream",
    fresh=True,
)
async def whole_list(rig: DevicePluginRig) -> Outcome:
    plugins = rig.plugins
    first = await _changed(rig, await _started(plugins))
    if first is None:
        return _unreported(rig)
    fresh = await _another(rig, next(plugin for plugin in plugins if plugin.watch is first))
    fresh.close()
    if _state(fresh) != _state(first):
        was, now = sorted(_state(first)), sorted(_state(fresh))
        return Failed(f"after a change an open stream was sent {was[:8]}, but a new stream {now[:8]}")
    return Passed()


@checks.add(
    "DP-CHANGE-3",
    "A change is reported on every stream",
    rule="each ListAndWatch returns the new list; two streams may be open while a kubelet is replaced",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW}; use two clients",
    fresh=True,
)
async def on_every_stream(rig: DevicePluginRig) -> Outcome:
    plugins = rig.plugins
    older = await _started(plugins)
    newer = [await _another(rig, plugin) for plugin in plugins]
    twins = dict(zip([*older, *newer], [*newer, *older], strict=True))
    before = {stream: _state(stream) for stream in twins}
    first = await _changed(rig, list(twins))
    if first is None:
        return _unreported(rig)
    twin = twins[first]
    if await twin.until(lambda watch: _state(watch) != before[twin], rig.settings.wait):
        return Passed()
    which = "older" if twin in older else "newer"
    return Failed(f"of two open streams, the {which} one did not report a change within {rig.settings.wait:g} s")


@checks.add(
    "DP-CHANGE-4",
    "A change is reported after a stream was closed",
    rule="a closed stream must not consume changes that are meant for the open stream",
    source=sources.DEVICE_MANAGER,
    how="call ListAndWatch and end the call; call it again, change the devices, and print the responses",
    fresh=True,
)
async def after_closed_streams(rig: DevicePluginRig) -> Outcome:
    plugins = rig.plugins
    for stream in await _started(plugins):
        stream.close()
    streams = [await _another(rig, plugin) for plugin in plugins]
    if await _changed(rig, streams):
        return Passed()
    return _unreported(rig, "after a stream was closed, another one opened and the devices changed")


@checks.add(
    "DP-CHANGE-5",
    "A change is reported after a kubelet restart",
    rule="the kubelet has one open stream, that of its newest registration, and needs the changes there",
    source=sources.DEVICE_MANAGER,
    how="stop the kubelet, remove the sockets, serve kubelet.sock again; open ListAndWatch, change the devices",
    fresh=True,
)
async def after_restart(rig: DevicePluginRig) -> Outcome:
    rig.need_change()
    resources, before = rig.resources, rig.kubelet.count
    await _started(rig.plugins)
    await rig.restart_kubelet()
    if not await rig.ready_again(resources, before):
        raise CannotTell("the plugin did not register again: see DP-AGAIN-1")
    await rig.kubelet.registrations.settle(rig.settings.settle)
    if await _changed(rig, await _started(rig.plugins)):
        return Passed()
    return _unreported(rig, "after the kubelet was restarted and the devices changed")


@checks.add(
    "DP-CHANGE-6",
    "A new device can be allocated",
    rule="Allocate is called with any ID that is Healthy in the newest list: Allocate",
    how=f"{_HOW}; call Allocate with an ID that was not listed before",
    fresh=True,
)
async def new_device(rig: DevicePluginRig) -> Outcome:
    plugin, new = await _come(rig)
    if not new:
        plugin, new = await _come(rig)  # devices removed by the first change may come back with the second
    if not new:
        raise CannotTell("the devices changed, but no healthy device was added")
    for id in new[:_TRIED]:
        try:
            await plugin.allocate([id])
        except PluginError as e:
            return Failed(f"{id} is new and healthy, but allocating it failed: {e.message}")
    return Passed()


async def _come(rig: DevicePluginRig) -> tuple[PluginClient, list[str]]:
    """Change the devices and return those that became healthy. Raises CannotTell if no change is reported."""
    streams = {plugin.watch: plugin for plugin in rig.plugins}
    before = {stream: _state(stream) for stream in await _started(rig.plugins)}
    first = await _changed(rig, list(streams))
    if first is None:
        raise CannotTell("a change of devices is not reported: see DP-CHANGE-1")
    new = {id for id, health in _state(first) - before[first] if health == "Healthy"}
    return streams[first], sorted(new)
