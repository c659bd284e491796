"""Calls that do not go as they should: cancelled, cut off, not understood."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, cast

import anyio
from google.protobuf.unknown_fields import UnknownFieldSet

from devlet.errors import PluginError, PluginUnavailable, PluginUnimplemented
from devlet.sanity.check import Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.device_plugin.every import every_plugin
from devlet.sanity.plugin_client import PluginClient, connected
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig]()


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
    for _ in range(30):
        with anyio.move_on_after(rig.dice.number(0, 20) / 10_000):
            await plugin.allocate(ids)
    return await _still_good(rig, plugin, "30 calls of Allocate that were cancelled")


@checks.add(
    "DP-CALL-2",
    "A connection that breaks does no harm",
    rule="a kubelet that is killed takes its connections with it, in the middle of any call",
    how="call Allocate and ListAndWatch, close the connection at once, many times; then call from another",
)
@every_plugin
async def cut_off(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    for _ in range(10):
        async with (
            connected(plugin.resource, plugin.path, rig.tasks, dial=rig.settings.dial, answer=5.0) as other,
            anyio.create_task_group() as tasks,
        ):
            other.follow()
            tasks.start_soon(_cut_off, other, ids)
            await anyio.sleep(rig.dice.number(0, 20) / 10_000)
            tasks.cancel_scope.cancel()
    return await _still_good(rig, plugin, "10 connections that were closed in the middle of calls")


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
    try:
        await plugin.raw("Allocate", b"\xff" * 16)
    except PluginUnavailable as e:
        return Failed(f"sixteen bytes 0xff were sent as an AllocateRequest: {e.message}; {rig.trouble}".rstrip("; "))
    except PluginError:
        return await _still_good(rig, plugin, "a message that is no protobuf")
    return Failed("sixteen bytes 0xff were sent as an AllocateRequest, and it answered with success")


@checks.add(
    "DP-CALL-4",
    "A method that it does not have is unimplemented",
    rule="newer kubelets may call newer methods: UNIMPLEMENTED tells them that a plugin is older",
    how="call /v1beta1.DevicePlugin/NoSuchMethod on its socket",
)
@every_plugin
async def no_such_method(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    try:
        await plugin.raw("NoSuchMethod", b"")
    except PluginUnimplemented:
        return Passed()
    except PluginError as e:
        return Failed(f"a method that does not exist is answered with: {e.message}")
    return Failed("a method that does not exist is answered with success")


@checks.add(
    "DP-CALL-5",
    "Its answers are those of v1beta1",
    rule="v1beta1 messages are known: a field that is not in them is read by nobody, and mostly another API's",
    how="decode its answers with `protoc --decode` and look for fields without a name",
)
@every_plugin
async def known_fields(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    devices = await plugin.devices()
    granted = await plugin.allocate(ids[:1])
    answers = [await plugin.options(), granted, *granted.container_responses, *devices]
    for answer in answers:
        if numbers := sorted({unknown.field_number for unknown in cast(Iterable[Any], UnknownFieldSet(answer))}):
            name = answer.DESCRIPTOR.name
            return Warned(f"{name} has fields that v1beta1 does not know: number {', '.join(map(str, numbers))}")
    return Passed()


@checks.add(
    "DP-CALL-6",
    "Many calls leave nothing behind",
    rule="a plugin outlives many pods; what it keeps for each call is lost until it cannot go on",
    how="call Allocate some hundred times and look at /proc/PID/fd and /proc/PID/task",
    fresh=True,
)
@every_plugin
async def no_leaks(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    await _allocations(plugin, ids, 50)
    before = rig.usage()
    await _allocations(plugin, ids, 200)
    after = rig.usage()
    if (more := after.files - before.files) > 100:
        return Failed(f"{more} more open files after 200 calls of Allocate")
    if (more := after.threads - before.threads) > 100:
        return Failed(f"{more} more threads after 200 calls of Allocate")
    return Passed()


async def _allocations(plugin: PluginClient, ids: list[str], times: int) -> None:
    for number in range(times):
        await plugin.allocate([ids[number % len(ids)]])


@checks.add(
    "DP-CALL-7",
    "It does not fill the disk with its log",
    rule="a node has many plugins and one disk: what is written while nothing happens is written for ever",
    how="start it and look at how much it writes",
)
async def quiet_log(rig: DevicePluginRig) -> Outcome:
    before = rig.log_bytes()
    await anyio.sleep(rig.settings.quiet)
    rate = (rig.log_bytes() - before) / rig.settings.quiet
    return (
        Failed(f"it writes {rate / 1e6:.1f} MB of log in a second, while nothing happens") if rate > _LOG else Passed()
    )


_LOG = 256 << 10  # bytes in a second
