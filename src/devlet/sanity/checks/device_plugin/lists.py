"""The device lists that a plugin sends on ListAndWatch while nothing changes."""

from collections import Counter
from functools import partial

import anyio
import anyio.lowlevel

from devlet.errors import PluginUnavailable
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks import leaks, wire
from devlet.sanity.checks.device_plugin.every import every_plugin
from devlet.sanity.checks.moments import duration
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

_HOW = "call /v1beta1.DevicePlugin/ListAndWatch on its socket and print the responses"
_ID_LENGTH = 63
_FLOOD = 20  # lists per second
_BUDGET = 20.0  # seconds, after which no further rounds begin
_LONGEST = 60.0  # seconds, for many long lists


def _ids(answer: pb.ListAndWatchResponse | None) -> list[str]:
    return sorted(device.ID for device in answer.devices) if answer else []


@checks.add(
    "DP-LIST-1",
    "The plugin sends its devices immediately",
    rule="ListAndWatch returns the list of devices, and a new one whenever it changes: the first comes at once",
    how=_HOW,
)
@every_plugin
async def at_once(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    if await plugin.watch.until(lambda watch: watch.count > 0, rig.settings.answer):
        return Passed()
    return Failed(plugin.watch.ended or f"no device list was sent within {rig.settings.answer:g} s")


@checks.add(
    "DP-LIST-2",
    "ListAndWatch stays open",
    rule="when ListAndWatch ends, the kubelet treats the plugin as dead and allocates none of its devices",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW}; it must not end",
)
@every_plugin
async def stays_open(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await plugin.devices()
    await plugin.watch.until(lambda watch: bool(watch.ended), rig.settings.quiet)
    return Failed(plugin.watch.ended) if plugin.watch.ended else Passed()


@checks.add(
    "DP-LIST-3",
    "Device IDs have between 1 and 63 characters",
    rule="Device.ID is unique and has at most 63 characters: Device",
    how=_HOW,
)
@every_plugin
async def id_lengths(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    for device in await plugin.devices():
        if not 1 <= len(device.ID) <= _ID_LENGTH:
            return Failed(f"the device ID {device.ID!r} has {len(device.ID)} characters")
    return Passed()


@checks.add(
    "DP-LIST-4",
    "Device IDs are unique",
    rule="Device.ID is unique; the kubelet counts an ID that is listed with both kinds of health as two devices",
    source=sources.DEVICE_MANAGER,
    how=_HOW,
)
@every_plugin
async def unique_ids(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = [device.ID for device in await plugin.devices()]
    twice = sorted(id for id, count in Counter(ids).items() if count > 1)
    return Failed(f"listed more than once: {', '.join(twice[:5])}") if twice else Passed()


@checks.add(
    "DP-LIST-5",
    "Health is Healthy or Unhealthy",
    rule="Device.health is spelled exactly so; the kubelet treats anything else as unhealthy",
    how=_HOW,
)
@every_plugin
async def known_health(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    for device in await plugin.devices():
        if device.health not in ("Healthy", "Unhealthy"):
            return Failed(f"the health of {device.ID} is {device.health!r}, expected Healthy or Unhealthy")
    return Passed()


@checks.add(
    "DP-LIST-6",
    "Devices name only NUMA nodes of this machine",
    rule="TopologyInfo lists NUMA nodes; with one that does not exist, such as -1, the device cannot be aligned",
    source=sources.DEVICE_PLUGINS,
    how=f"{_HOW}; compare with /sys/devices/system/node",
)
@every_plugin
async def topology(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    nodes = rig.numa_nodes
    for device in await plugin.devices():
        listed = [node.ID for node in device.topology.nodes]
        if wrong := [node for node in listed if node < 0 or (nodes and node not in nodes)]:
            known = ", ".join(map(str, sorted(nodes))) or "unknown"
            return Failed(f"{device.ID} names NUMA node {wrong[0]}; this machine has: {known}")
        if len(set(listed)) < len(listed):
            return Failed(f"{device.ID} names a NUMA node twice: {listed}")
    return Passed()


@checks.add(
    "DP-LIST-7",
    "A second stream gets the whole list",
    rule="each ListAndWatch begins with the full list, because the kubelet opens a new one whenever it connects",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW}, in two clients at the same time",
)
@every_plugin
async def second_stream(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await plugin.devices()
    second = plugin.follow()
    try:
        came = await second.until(lambda watch: watch.count > 0, rig.settings.answer)
        expected, got = _ids(plugin.watch.newest), _ids(second.newest)
        if not came:
            return Failed(f"no list was sent on a second stream{f': {second.ended}' if second.ended else ''}")
        return Passed() if got == expected else Failed(f"the second stream began with {got}, expected {expected}")
    finally:
        second.close()


@checks.add(
    "DP-LIST-8",
    "Closing a stream does not affect other streams",
    rule="connections may end at any time; the plugin continues to serve open and new connections",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW}, in two clients; stop one, start another",
)
@every_plugin
async def closed_stream(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    expected = sorted(device.ID for device in await plugin.devices())
    second = plugin.follow()
    await second.until(lambda watch: watch.count > 0, rig.settings.answer)
    second.close()
    third = plugin.follow()
    await third.until(lambda watch: watch.count > 0, rig.settings.answer)
    third.close()
    await plugin.watch.until(lambda watch: bool(watch.ended), rig.settings.quiet)
    if plugin.watch.ended:
        return Failed(f"when a second stream was closed, the first one ended: {plugin.watch.ended}")
    if _ids(third.newest) != expected:
        return Failed(f"after a stream was closed, the next one began with {_ids(third.newest)}, expected {expected}")
    return Passed()


@checks.add(
    "DP-LIST-9",
    "A device list is at most 4 MiB",
    rule="gRPC receives at most 4 MiB by default; a longer list breaks the stream, and the kubelet does not retry",
    source=sources.GRPC,
    how=f"{_HOW}; add up its bytes",
)
@every_plugin
async def list_size(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await plugin.devices()
    if plugin.watch.size > wire.MESSAGE_MAX:
        count, size = len(await plugin.devices()), plugin.watch.size
        return Failed(f"a list of {count} devices has {size} bytes, expected at most {wire.MESSAGE_MAX}")
    return Passed()


@checks.add(
    "DP-LIST-10",
    "A list is sent only when something has changed",
    rule="ListAndWatch returns a new list when a device changes; the kubelet writes its checkpoint for each list",
    how=f"{_HOW} while nothing changes",
)
@every_plugin
async def no_flood(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await plugin.devices()
    watch, before, quiet = plugin.watch, plugin.watch.count, rig.settings.quiet
    await anyio.sleep(quiet)
    more = watch.count - before
    if more > _FLOOD * quiet:
        return Failed(f"the plugin sent {more} lists in {quiet:g} s, although nothing changed")
    if more and len({_content(each) for each in list(watch.lists)[-(more + 1) :]}) == 1:
        return Warned(f"the plugin sent {more} identical lists in {quiet:g} s")
    return Passed()


def _content(answer: pb.ListAndWatchResponse) -> bytes:
    return b"".join(sorted(device.SerializeToString(deterministic=True) for device in answer.devices))


@checks.add(
    "DP-LIST-11",
    "Many concurrent streams all get the whole list",
    rule="each ListAndWatch begins with the full list, even for several clients at once",
    how=f"{_HOW}, in 40 clients started together",
)
@every_plugin
async def many_streams(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    began = anyio.current_time()
    limit = max(rig.settings.answer, 40 * await duration(partial(_open_and_close, rig, plugin, 1)))
    for _ in range(8):  # races show only sometimes
        if isinstance(outcome := await _together(rig, plugin, limit), Failed):
            return outcome
        if anyio.current_time() - began > _BUDGET:
            break
    return Passed()


async def _together(rig: DevicePluginRig, plugin: PluginClient, limit: float) -> Outcome:
    expected = sorted(device.ID for device in await plugin.devices())
    streams = [plugin.follow() for _ in range(40)]
    try:
        with anyio.move_on_after(min(limit, _LONGEST)):
            for stream in streams:
                await stream.until(lambda watch: watch.count > 0)
    finally:
        for stream in streams:
            stream.close()
    if broken := [stream.ended for stream in streams if stream.ended]:
        await anyio.sleep(rig.settings.settle)  # so that the exit of the driver is noticed
        return Failed(f"{len(broken)} of 40 streams ended: {broken[0]}; {rig.trouble}".rstrip("; "))
    wrong = [ids for ids in (_ids(stream.newest) for stream in streams) if ids != expected]
    if wrong:
        count = f"{len(wrong[0])} of {len(expected)} devices"
        return Failed(f"{len(wrong)} of 40 streams began with an incomplete list, such as {count}")
    return Passed()


@checks.add(
    "DP-LIST-12",
    "Closed streams release their resources",
    rule="a plugin outlives many kubelets; whatever it keeps for each closed stream adds up until it fails",
    source=sources.PRACTICE,
    how=f"{_HOW}; stop and repeat some hundred times, and compare /proc/PID/fd, /proc/PID/task and VmRSS",
    fresh=True,
)
@every_plugin
async def closed_streams(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    opened = partial(_open_and_close, rig, plugin)
    return await leaks.uses_up(rig, opened, 200, "streams were opened and closed", memory=_LEAK)


_LEAK = 4 << 10  # bytes for each closed stream


async def _open_and_close(rig: DevicePluginRig, plugin: PluginClient, times: int) -> None:
    for number in range(times):
        stream = plugin.follow()
        if not await stream.until(lambda watch: watch.count > 0, rig.settings.answer):
            problem = stream.ended or "no list was sent"
            raise PluginUnavailable(plugin.resource, f"stream {number + 1}, after the others were closed: {problem}")
        stream.close()
        await anyio.lowlevel.checkpoint()


@checks.add(
    "DP-LIST-13",
    "An unread stream does not block other calls",
    rule="a kubelet may be busy or stopped while its connection stays open; other calls must still be answered",
    source=sources.PRACTICE,
    how="call ListAndWatch without reading the responses; then call the other methods",
)
@every_plugin
async def unread_stream(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    async with plugin.unread_streams(3):
        await plugin.options()
        await plugin.allocate(ids[:1])
    return Passed()
