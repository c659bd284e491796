"""Calls with several claims, and concurrent calls."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import uuid4

import anyio

from devlet.errors import PluginError, PluginRefused
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.dra.answers import ids_of, same
from devlet.sanity.claim_maker import MadeClaim, Want
from devlet.sanity.dra_client import Ref
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.DRA_API)

_ANSWER = "the response has an entry for each claim in the call; the kubelet treats a missing one as a failure"


@checks.add(
    "DRA-BATCH-1",
    "Prepare answers for every claim in a call",
    rule=f"NodePrepareResources: {_ANSWER}",
    how="call NodePrepareResources with two claims",
)
async def all_prepared(rig: DraRig) -> Outcome:
    async with rig.claims(2) as claims:
        answer = await rig.client.prepare(*(each.ref for each in claims))
        return _all(claims, answer)


@checks.add(
    "DRA-BATCH-2",
    "Unprepare answers for every claim in a call",
    rule=f"NodeUnprepareResources: {_ANSWER}",
    how="call NodeUnprepareResources with two claims",
)
async def all_unprepared(rig: DraRig) -> Outcome:
    async with rig.claims(2) as claims:
        refs = [each.ref for each in claims]
        await rig.client.prepare(*refs)
        return _all(claims, await rig.client.unprepare(*refs))


def _all(claims: list[MadeClaim], answer: object) -> Outcome:
    found = getattr(answer, "claims", {})
    uids = {each.ref.uid for each in claims}
    if missing := [each.name for each in claims if each.ref.uid not in found]:
        return Failed(f"the response to a call with {len(claims)} claims has no entry for {', '.join(missing)}")
    if others := set(found) - uids:
        return Failed(f"the response has entries for claims that were not in the call: {', '.join(sorted(others))}")
    errors = [found[uid].error for uid in uids if found[uid].error]
    return Failed(errors[0]) if errors else Passed()


@checks.add(
    "DRA-BATCH-3",
    "A call without claims succeeds",
    rule="having nothing to do is not an error",
    source=sources.PRACTICE,
    how="call NodePrepareResources and NodeUnprepareResources without claims",
)
async def empty(rig: DraRig) -> Outcome:
    try:
        prepared, unprepared = await rig.client.prepare(), await rig.client.unprepare()
    except PluginError as e:
        return Warned(f"a call without claims failed: {e.message}")
    if prepared.claims or unprepared.claims:
        return Failed("the response to a call without claims has entries for claims")
    return Passed()


@checks.add(
    "DRA-BATCH-4",
    "A claim listed twice is prepared once",
    rule="kubelets list a claim twice if a pod uses it under two names; the response is by UID, so it has one entry",
    source=sources.DRA_MANAGER,
    how="call NodePrepareResources and then NodeUnprepareResources with the same claim twice",
)
async def twice(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for answer in (
            await rig.client.prepare(claim.ref, claim.ref),
            await rig.client.unprepare(claim.ref, claim.ref),
        ):
            if not isinstance(found := _all([claim], answer), Passed):
                return Failed(f"with a claim listed twice: {getattr(found, 'seen', '')}")
    return Passed()


@checks.add(
    "DRA-BATCH-5",
    "A bad claim does not affect the others in its call",
    rule="an error applies to one claim; if a call fails as a whole, its good claims succeed when they are retried",
    how="call NodePrepareResources with a good claim and one that does not exist; then with the good one alone",
)
async def partial(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        bad = Ref("default", "sanity-nobody", str(uuid4()))
        note = ""
        try:
            answer = (await rig.client.prepare(claim.ref, bad)).claims
            if bad.uid in answer and not answer[bad.uid].error:
                return Failed("a nonexistent claim was prepared, in a call with an existing one")
            if claim.ref.uid in answer and (error := answer[claim.ref.uid].error):
                return Failed(f"a good claim failed because the call contained a bad one: {error}")
        except PluginRefused as e:
            note = f"the call failed as a whole: {e.message[:150]}"
        try:
            devices = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"after a call with a bad claim, the good one cannot be prepared alone: {e.message}")
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"after a call with a bad claim, CDI devices are missing: {missing}")
    return Passed(note)


@checks.add(
    "DRA-BATCH-6",
    "Concurrent calls do not affect each other",
    rule="pods start concurrently: the kubelet calls the driver for each of them without waiting for the others",
    source=sources.DRA_MANAGER,
    how="call NodePrepareResources for several claims concurrently and repeatedly; compare the responses",
)
async def concurrent(rig: DraRig) -> Outcome:
    count = min(4, len(rig.offers()))
    found: list[Outcome] = []

    async def one(claim: MadeClaim) -> None:
        for _ in range(3):
            devices = await rig.client.prepared(claim.ref)
            answered = {(each.pool_name, each.device_name) for each in devices}
            if answered - claim.devices:
                found.append(Failed(f"{claim.name} was allocated {claim.devices}, but the response has {answered}"))
            elif missing := rig.cdi.missing(ids_of(devices)):
                found.append(Failed(f"{claim.name} was prepared, but CDI device {missing} does not exist"))
            await rig.client.unprepared(claim.ref)

    async with rig.claims(count) as claims, anyio.create_task_group() as tasks:
        for claim in claims:
            tasks.start_soon(one, claim)
    return found[0] if found else Passed()


@checks.add(
    "DRA-BATCH-7",
    "Concurrent prepare and unprepare of a claim leave it consistent",
    rule="a pod that ends and its successor may use the same claim: the last call counts",
    source=sources.KEP_4381,
    how="call NodeUnprepareResources and NodePrepareResources concurrently; then prepare once more and check",
)
async def opposed(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for _ in range(5):
            await rig.client.prepared(claim.ref)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_tried, rig.client.unprepare, claim.ref)
                tasks.start_soon(_tried, rig.client.prepare, claim.ref)
        devices = await rig.client.prepared(claim.ref)
        await anyio.sleep(rig.settings.quiet)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"the last call prepared the claim, but CDI device {missing} does not exist")
        return same(devices, await rig.client.prepared(claim.ref), "in two consecutive calls")


async def _tried(call: Callable[[Ref], Awaitable[object]], ref: Ref) -> None:
    """Make a call that may fail because of the other one."""
    with suppress(PluginError):
        await call(ref)


@checks.add(
    "DRA-BATCH-8",
    "An unknown claim does not keep others from being unprepared",
    rule="NodeUnprepareResources answers for each claim separately, and an unknown claim is a success",
    source=sources.KEP_4381,
    how="call NodeUnprepareResources with a claim that was never prepared and one that was; prepare another with its "
    "device",
)
async def with_unknown(rig: DraRig) -> Outcome:
    before, offers = rig.cdi.files(), rig.maker.take(1)
    unknown = MadeClaim(Ref("default", "sanity-nobody", str(uuid4())), ())
    async with rig.claim(Want(offers=offers)) as claim:
        await rig.client.prepared(claim.ref)
        found = _all([unknown, claim], await rig.client.unprepare(unknown.ref, claim.ref))
        if not isinstance(found, Passed):
            return found
        if left := rig.cdi.files() - before:
            return Failed(f"unpreparing a claim together with an unknown one left {', '.join(map(str, left))} behind")
        async with rig.claim(Want(offers=offers)) as second:
            try:
                await rig.client.prepared(second.ref)
            except PluginError as e:
                return Failed(
                    f"{offers[0].name} was unprepared together with an unknown claim; preparing it for another claim"
                    f" failed: {e.message}"
                )
    return Passed()
