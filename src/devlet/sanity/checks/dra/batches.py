"""Calls for several claims, and several calls at a time."""

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

_ANSWER = "the answer has an entry for each claim of the call, and the kubelet takes a missing one for a failure"


@checks.add(
    "DRA-BATCH-1",
    "It answers for each claim of a call",
    rule=f"NodePrepareResources: {_ANSWER}",
    how="call NodePrepareResources with two claims",
)
async def all_prepared(rig: DraRig) -> Outcome:
    async with rig.claims(2) as claims:
        answer = await rig.client.prepare(*(each.ref for each in claims))
        return _all(claims, answer)


@checks.add(
    "DRA-BATCH-2",
    "It answers for each claim that it unprepares",
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
        return Failed(f"asked for {len(claims)} claims, and not answered for {', '.join(missing)}")
    if others := set(found) - uids:
        return Failed(f"answered for claims that nobody asked for: {', '.join(sorted(others))}")
    errors = [found[uid].error for uid in uids if found[uid].error]
    return Failed(errors[0]) if errors else Passed()


@checks.add(
    "DRA-BATCH-3",
    "A call without claims is answered",
    rule="nothing to do is no error",
    source=sources.PRACTICE,
    how="call NodePrepareResources and NodeUnprepareResources without claims",
)
async def empty(rig: DraRig) -> Outcome:
    try:
        prepared, unprepared = await rig.client.prepare(), await rig.client.unprepare()
    except PluginError as e:
        return Warned(f"without claims: {e.message}")
    return Passed() if not prepared.claims and not unprepared.claims else Failed("it answers for claims that are none")


@checks.add(
    "DRA-BATCH-4",
    "A claim that is in a call twice is prepared once",
    rule="kubelets send a claim twice that a pod uses under two names; the answer is by UID, so there is one",
    source=sources.DRA_MANAGER,
    how="call NodePrepareResources, and then NodeUnprepareResources, with the same claim twice",
)
async def twice(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for answer in (
            await rig.client.prepare(claim.ref, claim.ref),
            await rig.client.unprepare(claim.ref, claim.ref),
        ):
            if not isinstance(found := _all([claim], answer), Passed):
                return Failed(f"a claim that was in the call twice: {getattr(found, 'seen', '')}")
    return Passed()


@checks.add(
    "DRA-BATCH-5",
    "One bad claim does not spoil the others",
    rule="an error is that of its claim; where a call fails as a whole, its good claims succeed when they are repeated",
    how="call NodePrepareResources with a good claim and one that does not exist; then with the good one alone",
)
async def partial(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        bad = Ref("default", "sanity-nobody", str(uuid4()))
        note = ""
        try:
            answer = (await rig.client.prepare(claim.ref, bad)).claims
            if bad.uid in answer and not answer[bad.uid].error:
                return Failed("a claim that does not exist was prepared, in one call with another one")
            if claim.ref.uid in answer and (error := answer[claim.ref.uid].error):
                return Failed(f"the good claim of the two failed, too: {error}")
        except PluginRefused as e:
            note = f"the call failed as a whole: {e.message[:150]}"
        try:
            devices = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"a claim that was in a call with a bad one cannot be prepared alone: {e.message}")
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"after a call with a bad claim, CDI devices are missing: {missing}")
    return Passed(note)


@checks.add(
    "DRA-BATCH-6",
    "Calls at the same time do not get in each other's way",
    rule="pods start at the same time: the kubelet calls for each of them, and does not wait for the others",
    source=sources.DRA_MANAGER,
    how="call NodePrepareResources for several claims at the same time, again and again; compare the answers",
)
async def concurrent(rig: DraRig) -> Outcome:
    count = min(4, len(rig.offers()))
    found: list[Outcome] = []

    async def one(claim: MadeClaim) -> None:
        for _ in range(3):
            devices = await rig.client.prepared(claim.ref)
            answered = {(each.pool_name, each.device_name) for each in devices}
            if answered - claim.devices:
                found.append(Failed(f"{claim.name} has {claim.devices}, and was answered with {answered}"))
            elif missing := rig.cdi.missing(ids_of(devices)):
                found.append(Failed(f"{claim.name}: no CDI device {missing}"))
            await rig.client.unprepared(claim.ref)

    async with rig.claims(count) as claims, anyio.create_task_group() as tasks:
        for claim in claims:
            tasks.start_soon(one, claim)
    return found[0] if found else Passed()


@checks.add(
    "DRA-BATCH-7",
    "Prepare and unprepare of one claim at the same time end well",
    rule="a pod that ends and its successor may use one claim: whatever comes last counts",
    source=sources.KEP_4381,
    how="call NodeUnprepareResources and NodePrepareResources at the same time; then prepare once more, and look",
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
            return Failed(f"prepared last of all, and yet there is no CDI device {missing}")
        return same(devices, await rig.client.prepared(claim.ref), "one call after the other")


async def _tried(call: Callable[[Ref], Awaitable[object]], ref: Ref) -> None:
    """Either may be told to come again."""
    with suppress(PluginError):
        await call(ref)


@checks.add(
    "DRA-BATCH-8",
    "A claim that it never heard of does not keep others from being unprepared",
    rule="NodeUnprepareResources answers for each claim on its own, and one that is not known is a success",
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
            return Failed(f"unprepared together with a claim that is not known; left over: {', '.join(map(str, left))}")
        async with rig.claim(Want(offers=offers)) as second:
            try:
                await rig.client.prepared(second.ref)
            except PluginError as e:
                return Failed(f"{offers[0].name} was unprepared together with a claim that is not known; {e.message}")
    return Passed()
