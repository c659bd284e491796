"""What a driver does when a claim is to be unprepared."""

from uuid import uuid4

from devlet.errors import PluginError
from devlet.sanity.check import Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.claim_maker import Want
from devlet.sanity.dra_client import Ref
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig]()

_HOW = "call NodePrepareResources and NodeUnprepareResources"


@checks.add(
    "DRA-UNPREP-1",
    "It unprepares what it prepared",
    rule="a pod does not end before NodeUnprepareResources has succeeded",
    how=_HOW,
)
async def unprepares(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        await rig.client.unprepared(claim.ref)
    return Passed()


@checks.add(
    "DRA-UNPREP-2",
    "Its CDI files go with the claim",
    rule="what is left over is read by every runtime for every container, and nobody else removes it",
    how=f"{_HOW}; compare the CDI directory before and after",
)
async def removes_files(rig: DraRig) -> Outcome:
    before = rig.cdi.files()
    offers = rig.maker.take_up_to(2)
    wants = [Want("first", offers=offers[:1]), Want("second", offers=offers[1:], alternative="sub")]
    async with rig.claim(*wants[: len(offers)]) as claim:
        await rig.client.prepared(claim.ref)
        await rig.client.unprepared(claim.ref)
        left = rig.cdi.files() - before
    return Failed(f"left over: {', '.join(sorted(map(str, left)))}") if left else Passed()


@checks.add(
    "DRA-UNPREP-3",
    "It may be repeated",
    rule="NodeUnprepareResources is called again if its answer was lost, or another driver failed: it is idempotent",
    how=f"{_HOW}, the latter twice",
)
async def idempotent(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        await rig.client.unprepared(claim.ref)
        try:
            await rig.client.unprepared(claim.ref)
        except PluginError as e:
            return Failed(f"unprepared once; the second time {e.message}")
    return Passed()


@checks.add(
    "DRA-UNPREP-4",
    "A claim that it never heard of is no error",
    rule="a kubelet unprepares whatever it may have prepared, also when the call was never answered",
    how="call NodeUnprepareResources with a claim that was never prepared",
)
async def unknown(rig: DraRig) -> Outcome:
    try:
        await rig.client.unprepared(Ref("default", "sanity-nobody", str(uuid4())))
    except PluginError as e:
        return Failed(f"never prepared: {e.message}")
    return Passed()


@checks.add(
    "DRA-UNPREP-5",
    "A claim that is gone from the API can be unprepared",
    rule="a claim may have been deleted by force: its devices have to be given back all the same",
    how="call NodePrepareResources, delete the claim, call NodeUnprepareResources",
)
async def deleted(rig: DraRig) -> Outcome:
    before = rig.cdi.files()
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        await rig.maker.delete(claim.ref)
        try:
            await rig.client.unprepared(claim.ref)
        except PluginError as e:
            return Failed(f"the claim is gone from the API; {e.message}")
        left = rig.cdi.files() - before
    return Failed(f"the claim is gone from the API; left over: {', '.join(map(str, left))}") if left else Passed()


@checks.add(
    "DRA-UNPREP-6",
    "What was unprepared can be prepared again",
    rule="a claim outlives its pods: it is prepared for the next one",
    how=f"{_HOW}, and NodePrepareResources again",
)
async def again(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        await rig.client.unprepared(claim.ref)
        try:
            devices = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"prepared and unprepared; then {e.message}")
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"prepared again, and there is no CDI device {missing}")
    return Passed()


@checks.add(
    "DRA-UNPREP-7",
    "A device that was given back is free for another claim",
    rule="the scheduler gives it to the next claim as soon as the pod has ended",
    how=f"{_HOW}; then NodePrepareResources for another claim with the same device",
)
async def free_again(rig: DraRig) -> Outcome:
    offers = rig.maker.take(1)
    async with rig.claim(Want(offers=offers)) as first:
        await rig.client.prepared(first.ref)
        await rig.client.unprepared(first.ref)
        async with rig.claim(Want(offers=offers)) as second:
            try:
                await rig.client.prepared(second.ref)
            except PluginError as e:
                return Failed(f"{offers[0].name} was unprepared for {first.name}; for {second.name} {e.message}")
    return Passed()


@checks.add(
    "DRA-UNPREP-8",
    "Other claims stay as they are",
    rule="a claim is unprepared because its pods have ended, and those of others have not",
    how="call NodePrepareResources for two claims, NodeUnprepareResources for one, and look into the CDI directory",
)
async def others_stay(rig: DraRig) -> Outcome:
    async with rig.claims(2) as (first, second):
        await rig.client.prepared(first.ref)
        devices = await rig.client.prepared(second.ref)
        await rig.client.unprepared(first.ref)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"{first.name} was unprepared, and {second.name} lost {missing}")
    return Passed()
