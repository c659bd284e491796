"""What a plugin sends on ListAndWatch when its devices change. The user says how to make them change (`--change`)."""

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.device_lists import DeviceListWatch
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

_HOW = "call /v1beta1.DevicePlugin/ListAndWatch on its socket, make its devices change, and print what comes"
_TRIED = 16  # devices, of many that come at once


def _state(watch: DeviceListWatch) -> set[tuple[str, str]]:
    return {(device.ID, device.health) for device in watch.newest.devices} if watch.newest else set()


async def _changed(rig: DevicePluginRig, streams: list[DeviceListWatch]) -> DeviceListWatch | None:
    """Make the devices change; the stream on which this is told first. A change is that of one resource, and which one
    is not known."""
    before = [_state(stream) for stream in streams]
    told: list[DeviceListWatch] = []
    await rig.change_devices()
    async with anyio.create_task_group() as tasks:

        async def listen(stream: DeviceListWatch, known: set[tuple[str, str]]) -> None:
            if await stream.until(lambda watch: _state(watch) != known, rig.settings.wait):
                told.append(stream)
                tasks.cancel_scope.cancel()

        for stream, known in zip(streams, before, strict=True):
            tasks.start_soon(listen, stream, known)
    return told[0] if told else None


async def _started(plugins: list[PluginClient]) -> list[DeviceListWatch]:
    for plugin in plugins:
        await plugin.devices()
    return [plugin.watch for plugin in plugins]


async def _another(rig: DevicePluginRig, plugin: PluginClient) -> DeviceListWatch:
    stream = plugin.follow()
    await stream.until(lambda watch: watch.count > 0, rig.settings.answer)
    return stream


def _untold(rig: DevicePluginRig, when: str = "the devices were changed") -> Failed:
    return Failed(f"{when}, and in {rig.settings.wait:g} s no other list came")


@checks.add(
    "DP-CHANGE-1",
    "A change of its devices is told",
    rule="whenever a device changes or goes ListAndWatch returns the new list: ListAndWatch",
    how=_HOW,
    fresh=True,
)
async def told(rig: DevicePluginRig) -> Outcome:
    streams = await _started(rig.plugins)
    return Passed() if await _changed(rig, streams) else _untold(rig)


@checks.add(
    "DP-CHANGE-2",
    "A change is told by the whole list",
    rule="ListAndWatchResponse is always the full list, never a difference",
    how=f"{_HOW}; compare it with the first list of a new stream",
    fresh=True,
)
async def whole_list(rig: DevicePluginRig) -> Outcome:
    plugins = rig.plugins
    first = await _changed(rig, await _started(plugins))
    if first is None:
        return _untold(rig)
    fresh = await _another(rig, next(plugin for plugin in plugins if plugin.watch is first))
    fresh.close()
    if _state(fresh) != _state(first):
        was, now = sorted(_state(first)), sorted(_state(fresh))
        return Failed(f"after a change an open stream has {was[:8]}, a new one {now[:8]}")
    return Passed()


@checks.add(
    "DP-CHANGE-3",
    "A change is told on every stream",
    rule="each ListAndWatch returns the new list; two may be open while a kubelet is replaced",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW}; do so with two clients",
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
        return _untold(rig)
    twin = twins[first]
    if await twin.until(lambda watch: _state(watch) != before[twin], rig.settings.wait):
        return Passed()
    which = "older" if twin in older else "newer"
    return Failed(f"of two open streams the {which} was not told of a change within {rig.settings.wait:g} s")


@checks.add(
    "DP-CHANGE-4",
    "A change is told after a stream was closed",
    rule="a closed stream is nobody's: it must not take the changes that are meant for the stream that is open",
    source=sources.DEVICE_MANAGER,
    how="call ListAndWatch and end the call; call it again, make the devices change, and print what comes",
    fresh=True,
)
async def after_closed_streams(rig: DevicePluginRig) -> Outcome:
    plugins = rig.plugins
    for stream in await _started(plugins):
        stream.close()
    streams = [await _another(rig, plugin) for plugin in plugins]
    if await _changed(rig, streams):
        return Passed()
    return _untold(rig, "a stream was closed, another one opened, and the devices changed")


@checks.add(
    "DP-CHANGE-5",
    "A change is told to a kubelet that was restarted",
    rule="the kubelet has one open stream, that of its newest registration: changes are to be told there",
    source=sources.DEVICE_MANAGER,
    how="stop the kubelet, remove the sockets, serve kubelet.sock anew; open ListAndWatch, make a change",
    fresh=True,
)
async def after_restart(rig: DevicePluginRig) -> Outcome:
    rig.need_change()
    resources, before = rig.resources, rig.kubelet.count
    await _started(rig.plugins)
    await rig.restart_kubelet()
    if not await rig.ready_again(resources, before):
        raise CannotTell("it did not register again")
    await rig.kubelet.registrations.settle(rig.settings.settle)
    if await _changed(rig, await _started(rig.plugins)):
        return Passed()
    return _untold(rig, "the kubelet was restarted and the devices changed")


@checks.add(
    "DP-CHANGE-6",
    "A device that is new can be allocated",
    rule="Allocate is called with any id that the newest list has as Healthy: Allocate",
    how=f"{_HOW}; call Allocate with an id that was not there before",
    fresh=True,
)
async def new_device(rig: DevicePluginRig) -> Outcome:
    plugin, new = await _come(rig)
    if not new:
        plugin, new = await _come(rig)  # what went the first time may come the second
    if not new:
        raise CannotTell("its devices changed, and none came that is healthy")
    for id in new[:_TRIED]:
        try:
            await plugin.allocate([id])
        except PluginError as e:
            return Failed(f"{id} is new and healthy: {e.message}")
    return Passed()


async def _come(rig: DevicePluginRig) -> tuple[PluginClient, list[str]]:
    """Devices that are healthy after a change, and were not before. CannotTell if it is not told."""
    streams = {plugin.watch: plugin for plugin in rig.plugins}
    before = {stream: _state(stream) for stream in await _started(rig.plugins)}
    first = await _changed(rig, list(streams))
    if first is None:
        raise CannotTell("a change of its devices is not told: see DP-CHANGE-1")
    new = {id for id, health in _state(first) - before[first] if health == "Healthy"}
    return streams[first], sorted(new)
