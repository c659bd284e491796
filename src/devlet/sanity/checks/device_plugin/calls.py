"""Calls that do not go as they should: cancelled, cut off, not understood."""

from contextlib import suppress
from functools import partial

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed
from devlet.sanity.checks import leaks, wire
from devlet.sanity.checks.device_plugin.every import every_plugin
from devlet.sanity.checks.moments import duration, moments
from devlet.sanity.plugin_client import PluginClient, connected
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.GRPC)


async def _still_good(rig: DevicePluginRig, plugin: PluginClient, after: str) -> Outcome:
    """Whether it answers as before."""
    ids = await plugin.healthy()
    try:
        await plugin.options()
        await plugin.allocate(ids[:1])
    except PluginError as e:
        return Failed(f"after {after}: {e.message}; {rig.trouble}".rstrip("; "))
    if plugin.watch.ended:
        return Failed(f"after {after} its stream ended: {plugin.watch.ended}")
    return Passed()


@checks.add(
    "DP-CALL-1",
    "A cancelled call does no harm",
    rule="the kubelet cancels calls when it ends or a pod goes; the plugin forgets them and answers the next",
    how="call Allocate and cancel it at once, many times; then call it once more",
)
@every_plugin
async def cancelled(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    took = await duration(lambda: plugin.allocate(ids))
    for moment in moments(took, 30, rig.dice):
        with anyio.move_on_after(moment):
            await plugin.allocate(ids)
    return await _still_good(rig, plugin, "calls of Allocate that were cancelled")


@checks.add(
    "DP-CALL-2",
    "A connection that breaks does no harm",
    rule="a kubelet that is killed takes its connections with it, in the middle of any call",
    how="call Allocate and ListAndWatch, close the connection at once, many times; then call from another",
)
@every_plugin
async def cut_off(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    took = await duration(lambda: plugin.allocate(ids))
    for moment in moments(took, 10, rig.dice):
        async with (
            connected(plugin.resource, plugin.path, rig.tasks, dial=rig.settings.dial, answer=5.0) as other,
            anyio.create_task_group() as tasks,
        ):
            stream = other.follow()
            await stream.until(lambda watch: watch.count > 0, rig.settings.answer)
            tasks.start_soon(_cut_off, other, ids)
            await anyio.sleep(moment)
            tasks.cancel_scope.cancel()
    return await _still_good(rig, plugin, "connections that were closed in the middle of calls")


async def _cut_off(plugin: PluginClient, ids: list[str]) -> None:
    with suppress(PluginError):
        await plugin.allocate(ids)


@checks.add(
    "DP-CALL-3",
    "What it does not understand it refuses",
    rule="a message that is no protobuf is an error of gRPC, and not the end of the plugin",
    how="send bytes that are no protobuf as an AllocateRequest",
)
@every_plugin
async def garbage(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    return await wire.refuses_garbage(rig, plugin, "Allocate", partial(_still_good, rig, plugin))


@checks.add(
    "DP-CALL-4",
    "A method that it does not have is unimplemented",
    rule="newer kubelets may call newer methods: UNIMPLEMENTED tells them that a plugin is older",
    how="call /v1beta1.DevicePlugin/NoSuchMethod on its socket",
)
@every_plugin
async def no_such_method(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    return await wire.no_such_method(plugin)


@checks.add(
    "DP-CALL-5",
    "Its answers are those of v1beta1",
    rule="v1beta1 messages are known: a field that is not in them is read by nobody, and mostly another API's",
    source=sources.DEVICE_PLUGIN_API,
    how="decode its answers with `protoc --decode` and look for fields without a name",
)
@every_plugin
async def known_fields(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    devices = await plugin.devices()
    granted = await plugin.allocate(ids[:1])
    return wire.known_fields([await plugin.options(), granted, *granted.container_responses, *devices])


@checks.add(
    "DP-CALL-6",
    "Many calls leave nothing behind",
    rule="a plugin outlives many pods; what it keeps for each call is lost until it cannot go on",
    source=sources.PRACTICE,
    how="call Allocate some hundred times and look at /proc/PID/fd and /proc/PID/task",
    fresh=True,
)
@every_plugin
async def no_leaks(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()

    async def allocate(times: int) -> None:
        for number in range(times):
            await plugin.allocate([ids[number % len(ids)]])

    return await leaks.uses_up(rig, allocate, 100, "calls of Allocate")


@checks.add(
    "DP-CALL-7",
    "It does not fill the disk with its log",
    rule="a node has many plugins and one disk: what is written while nothing happens is written for ever",
    source=sources.PRACTICE,
    how="start it and look at how much it writes",
)
async def quiet_log(rig: DevicePluginRig) -> Outcome:
    return await leaks.quiet_log(rig, rig.settings.quiet)
