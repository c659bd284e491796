"""Calls that go wrong: cancelled, disconnected or malformed ones."""

from contextlib import aclosing, suppress
from functools import partial

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed
from devlet.sanity.checks import leaks, wire
from devlet.sanity.checks.dra.health import health_service
from devlet.sanity.checks.moments import duration, moments
from devlet.sanity.dra_client import DraClient, Ref, connected
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.GRPC)


async def _still_good(rig: DraRig, ref: Ref, after: str) -> Outcome:
    """Check that the driver answers as before."""
    try:
        with anyio.fail_after(rig.settings.wait):
            await rig.client.prepared(ref)
            await rig.client.unprepared(ref)
    except TimeoutError:
        return Failed(f"after {after}, the next call was not answered within {rig.settings.wait:g} s")
    except PluginError as e:
        return Failed(f"after {after}: {e.message}; {rig.trouble}".rstrip("; "))
    return Passed()


@checks.add(
    "DRA-CALL-1",
    "Cancelled calls do no harm",
    rule="the kubelet cancels calls after 45 seconds, or when it exits: the driver must still answer the next call",
    source=sources.DRA_MANAGER,
    how="call NodePrepareResources and cancel the call at once, many times; then call it once more",
)
async def cancelled(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        calls = (rig.client.prepare, rig.client.unprepare)
        times = [await duration(partial(call, claim.ref)) for call in calls]
        for call, took in zip(calls, times, strict=True):
            for moment in moments(took, 10, rig.dice):
                with anyio.move_on_after(moment):
                    await call(claim.ref)
        return await _still_good(rig, claim.ref, "cancelled calls")


@checks.add(
    "DRA-CALL-2",
    "Broken connections do no harm",
    rule="a kubelet may be killed, and its connections closed, in the middle of any call",
    how="call NodePrepareResources, close the connection at once, many times; then call from another",
)
async def cut_off(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        client = rig.client
        took = await duration(partial(client.prepare, claim.ref))
        await client.unprepare(claim.ref)
        for moment in moments(took, 8, rig.dice):
            async with (
                connected(client.driver, client.path, client.service, dial=rig.settings.dial, answer=5.0) as other,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(_cut_off, other, claim.ref)
                await anyio.sleep(moment)
                tasks.cancel_scope.cancel()
        return await _still_good(rig, claim.ref, "connections closed in the middle of calls")


async def _cut_off(client: DraClient, ref: Ref) -> None:
    with suppress(PluginError):
        await client.prepare(ref)


@checks.add(
    "DRA-CALL-3",
    "Malformed requests are rejected",
    rule="a message that is not valid protobuf causes a gRPC error, and the driver continues",
    how="send bytes that are not valid protobuf as a NodePrepareResourcesRequest",
)
async def garbage(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        still_good = partial(_still_good, rig, claim.ref)
        return await wire.refuses_garbage(rig, rig.client, "NodePrepareResources", still_good)


@checks.add(
    "DRA-CALL-4",
    "Unknown methods are unimplemented",
    rule="newer kubelets may call newer methods: UNIMPLEMENTED tells them that the driver is older",
    how="call NoSuchMethod of its service",
)
async def no_such_method(rig: DraRig) -> Outcome:
    return await wire.no_such_method(rig.client)


@checks.add(
    "DRA-CALL-5",
    "Responses contain only fields of the API",
    rule="the kubelet ignores fields that are not in the API; they usually belong to another one",
    source=sources.DRA_API,
    how="decode the responses with `protoc --decode` and look for fields without a name",
)
async def known_fields(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        answer = await rig.client.prepare(claim.ref)
    claims = answer.claims.values()
    return wire.known_fields([answer, *claims, *(device for each in claims for device in each.devices)])


@checks.add(
    "DRA-CALL-6",
    "Calls do not leak resources",
    rule="a driver outlives many pods; whatever it keeps for each call adds up until it fails",
    source=sources.PRACTICE,
    how="prepare and unprepare a claim many times and compare /proc/PID/fd and /proc/PID/task",
    fresh=True,
)
async def no_leaks(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:

        async def rounds(times: int) -> None:
            for _ in range(times):
                await rig.client.prepared(claim.ref)
                await rig.client.unprepared(claim.ref)

        return await leaks.uses_up(rig, rounds, 20, "times prepare and unprepare")


@checks.add(
    "DRA-CALL-7",
    "The log does not fill the disk",
    rule="a node has many drivers and one disk: log output while nothing happens never stops growing",
    source=sources.PRACTICE,
    how="start the driver and measure how much it writes",
)
async def quiet_log(rig: DraRig) -> Outcome:
    return await leaks.quiet_log(rig, rig.settings.quiet)


@checks.add(
    "DRA-CALL-8",
    "Claims can be prepared while health is streamed",
    rule="health and claims share one connection: an open stream must not block calls",
    source=sources.KEP_4680,
    how="call NodeWatchResources, keep it open, and call NodePrepareResources on the same connection",
)
async def beside_streams(rig: DraRig) -> Outcome:
    async with rig.claim() as claim, aclosing(rig.client.health(health_service(rig))) as lists:
        with anyio.move_on_after(rig.settings.answer):
            await anext(lists)
            await rig.client.prepared(claim.ref)
            return Passed()
    limit = f"within {rig.settings.answer:g} s"
    return Failed(f"while a health stream was open, NodePrepareResources was not answered {limit}")
