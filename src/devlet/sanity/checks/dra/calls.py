"""Calls that do not go as they should: cancelled, cut off, not understood."""

from collections.abc import Iterable
from contextlib import aclosing, suppress
from typing import Any, cast

import anyio
from google.protobuf.unknown_fields import UnknownFieldSet

from devlet.errors import PluginError, PluginUnavailable, PluginUnimplemented
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.dra_client import HEALTH_SERVICES, Ref, connected
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig]()

_LOG = 256 << 10  # bytes in a second


async def _still_good(rig: DraRig, ref: Ref, after: str) -> Outcome:
    """Whether it answers as before."""
    try:
        with anyio.fail_after(rig.settings.wait):
            await rig.client.prepared(ref)
            await rig.client.unprepared(ref)
    except TimeoutError:
        return Failed(f"after {after} the next call was not answered within {rig.settings.wait:g} s")
    except PluginError as e:
        return Failed(f"after {after}: {e.message}; {rig.trouble}".rstrip("; "))
    return Passed()


@checks.add(
    "DRA-CALL-1",
    "A cancelled call does no harm",
    rule="the kubelet gives up after 45 seconds, or when it ends: the driver forgets the call and answers the next",
    how="call NodePrepareResources and cancel it at once, many times; then call it once more",
)
async def cancelled(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for number in range(20):
            with anyio.move_on_after(rig.dice.number(0, 50) / 10_000):
                await (rig.client.prepare if number % 2 else rig.client.unprepare)(claim.ref)
        return await _still_good(rig, claim.ref, "20 calls that were cancelled")


@checks.add(
    "DRA-CALL-2",
    "A connection that breaks does no harm",
    rule="a kubelet that is killed takes its connections with it, in the middle of any call",
    how="call NodePrepareResources, close the connection at once, many times; then call from another",
)
async def cut_off(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for _ in range(8):
            client = rig.client
            async with (
                connected(client.driver, client.path, client.service, dial=rig.settings.dial, answer=5.0) as other,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(_cut_off, other.prepare, claim.ref)
                await anyio.sleep(rig.dice.number(0, 50) / 10_000)
                tasks.cancel_scope.cancel()
        return await _still_good(rig, claim.ref, "8 connections that were closed in the middle of calls")


async def _cut_off(call: Any, ref: Ref) -> None:
    with suppress(PluginError):
        await call(ref)


@checks.add(
    "DRA-CALL-3",
    "What it does not understand it refuses",
    rule="a message that is no protobuf is an error of gRPC, and not the end of the driver",
    how="send bytes that are no protobuf as a NodePrepareResourcesRequest",
)
async def garbage(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        try:
            await rig.client.raw("NodePrepareResources", b"\xff" * 16)
        except PluginUnavailable as e:
            return Failed(f"sixteen bytes 0xff were sent as a request: {e.message}; {rig.trouble}".rstrip("; "))
        except PluginError:
            return await _still_good(rig, claim.ref, "a message that is no protobuf")
    return Failed("sixteen bytes 0xff were sent as a NodePrepareResourcesRequest, and it answered with success")


@checks.add(
    "DRA-CALL-4",
    "A method that it does not have is unimplemented",
    rule="newer kubelets may call newer methods: UNIMPLEMENTED tells them that a driver is older",
    how="call NoSuchMethod of its service",
)
async def no_such_method(rig: DraRig) -> Outcome:
    try:
        await rig.client.raw("NoSuchMethod", b"")
    except PluginUnimplemented:
        return Passed()
    except PluginError as e:
        return Failed(f"a method that does not exist is answered with: {e.message}")
    return Failed("a method that does not exist is answered with success")


@checks.add(
    "DRA-CALL-5",
    "Its answers are those of the API",
    rule="the messages are known: a field that is not in them is read by nobody, and mostly another API's",
    how="decode its answers with `protoc --decode` and look for fields without a name",
)
async def known_fields(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        answer = await rig.client.prepare(claim.ref)
    messages = [answer, *answer.claims.values(), *(each for one in answer.claims.values() for each in one.devices)]
    for message in messages:
        if numbers := sorted({unknown.field_number for unknown in cast(Iterable[Any], UnknownFieldSet(message))}):
            name = message.DESCRIPTOR.name
            return Warned(f"{name} has fields that nobody knows: number {', '.join(map(str, numbers))}")
    return Passed()


@checks.add(
    "DRA-CALL-6",
    "Many calls leave nothing behind",
    rule="a driver outlives many pods; what it keeps for each call is lost until it cannot go on",
    how="prepare and unprepare a claim many times and look at /proc/PID/fd and /proc/PID/task",
    fresh=True,
)
async def no_leaks(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        await _rounds(rig, claim.ref, 10)
        before = rig.usage()
        await _rounds(rig, claim.ref, 60)
        after = rig.usage()
    if (more := after.files - before.files) > 30:
        return Failed(f"{more} more open files after 60 times prepare and unprepare")
    if (more := after.threads - before.threads) > 30:
        return Failed(f"{more} more threads after 60 times prepare and unprepare")
    return Passed()


async def _rounds(rig: DraRig, ref: Ref, times: int) -> None:
    for _ in range(times):
        await rig.client.prepared(ref)
        await rig.client.unprepared(ref)


@checks.add(
    "DRA-CALL-7",
    "It does not fill the disk with its log",
    rule="a node has many drivers and one disk: what is written while nothing happens is written for ever",
    how="start it and look at how much it writes",
)
async def quiet_log(rig: DraRig) -> Outcome:
    before = rig.log_bytes()
    await anyio.sleep(rig.settings.quiet)
    rate = (rig.log_bytes() - before) / rig.settings.quiet
    return (
        Failed(f"it writes {rate / 1e6:.1f} MB of log in a second, while nothing happens") if rate > _LOG else Passed()
    )


@checks.add(
    "DRA-CALL-8",
    "Claims are prepared while it tells of health",
    rule="health and claims share one connection: a stream that is open must not hold up calls",
    how="call NodeWatchResources, keep it open, and call NodePrepareResources on the same connection",
)
async def beside_streams(rig: DraRig) -> Outcome:
    offered = [each for each in rig.greeting.versions if each in HEALTH_SERVICES]
    if not offered:
        raise CannotTell("it does not offer to tell the health of its devices")
    async with rig.claim() as claim, aclosing(rig.client.health(offered[0])) as lists:
        await anext(lists)
        with anyio.move_on_after(rig.settings.late):
            await rig.client.prepared(claim.ref)
            return Passed()
    return Failed(f"while a health stream is open NodePrepareResources is not answered within {rig.settings.late:g} s")
