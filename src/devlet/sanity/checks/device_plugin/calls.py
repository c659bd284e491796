"""Calls that go wrong: cancelled, disconnected or malformed ones."""

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
    """Check that the plugin answers as before."""
    ids = await plugin.healthy()
    try:
        await plugin.options()
        await plugin.allocate(ids[:1])
    except PluginError as e:
        return Failed(f"after {after}: {e.message}; {rig.trouble}".rstrip("; "))
    if plugin.watch.ended:
        return Failed(f"after {after} ListAndWatch ended: {plugin.watch.ended}")
    return Passed()


@checks.add(
    "DP-CALL-1",
    "Cancelled calls do no harm",
    rule="the kubelet cancels calls when it exits or a pod is deleted; the plugin must still answer the next call",
    how="call Allocate and cancel the call at once, many times; then call it once more",
)
@every_plugin
async def cancelled(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    took = await duration(lambda: plugin.allocate(ids))
    for moment in moments(took, 30, rig.dice):
        with anyio.move_on_after(moment):
            await plugin.allocate(ids)
    return await _still_good(rig, plugin, "cancelled calls of Allocate")


@checks.add(
    "DP-CALL-2",
    "Broken connections do no harm",
    rule="a kubelet may be killed, and its connections closed, in the middle of any call",
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
    return await _still_good(rig, plugin, "connections closed in the middle of calls")


async def _cut_off(plugin: PluginClient, ids: list[str]) -> None:
    with suppress(PluginError):
        await plugin.allocate(ids)


@checks.add(
    "DP-CALL-3",
    "Malformed requests are rejected",
    rule="a message that is not valid protobuf causes a gRPC error, and the plugin continues",
    how="send bytes that are not valid protobuf as an AllocateRequest",
)
@every_plugin
async def garbage(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    return await wire.refuses_garbage(rig, plugin, "Allocate", partial(_still_good, rig, plugin))


@checks.add(
    "DP-CALL-4",
    "Unknown methods are unimplemented",
    rule="newer kubelets may call newer methods: UNIMPLEMENTED tells them that the plugin is older",
    how="call /v1beta1.DevicePlugin/NoSuchMethod on its socket",
)
@every_plugin
async def no_such_method(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    return await wire.no_such_method(plugin)


@checks.add(
    "DP-CALL-5",
    "Responses contain only fields of v1beta1",
    rule="the kubelet ignores fields that are not in v1beta1; they usually belong to another API",
    source=sources.DEVICE_PLUGIN_API,
    how="decode the responses with `protoc --decode` and look for fields without a name",
)
@every_plugin
async def known_fields(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    devices = await plugin.devices()
    granted = await plugin.allocate(ids[:1])
    return wire.known_fields([await plugin.options(), granted, *granted.container_responses, *devices])


@checks.add(
    "DP-CALL-6",
    "Calls do not leak resources",
    rule="a plugin outlives many pods; whatever it keeps for each call adds up until it fails",
    source=sources.PRACTICE,
    how="call Allocate some hundred times and compare /proc/PID/fd and /proc/PID/task",
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
    "The log does not fill the disk",
    rule="a node has many plugins and one disk: log output while nothing happens never stops growing",
    source=sources.PRACTICE,
    how="start the plugin and measure how much it writes",
)
async def quiet_log(rig: DevicePluginRig) -> Outcome:
    return await leaks.quiet_log(rig, rig.settings.quiet)
