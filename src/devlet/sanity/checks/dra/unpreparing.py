"""What a driver does when a claim is to be unprepared."""

import os
from pathlib import Path
from uuid import uuid4

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.claim_maker import MadeClaim, Want
from devlet.sanity.dra_client import SERVICES, Ref
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.KEP_4381)

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
    source=sources.PRACTICE,
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
    source=sources.DRA_API,
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


@checks.add(
    "DRA-UNPREP-9",
    "What one of its services prepared each of them unprepares",
    rule="kubelets take the service that they know best, and may be updated or downgraded while a pod runs: "
    "PluginInfo.supported_versions",
    source=sources.REGISTRATION_API,
    how="call NodePrepareResources of one service, NodeUnprepareResources of the other; look into the CDI directory",
)
async def by_all(rig: DraRig) -> Outcome:
    services = [each for each in rig.greeting.versions if each in SERVICES]
    if len(services) < 2:
        raise CannotTell("it offers one service only")
    before = rig.cdi.files()
    for one, other in ((services[0], services[1]), (services[1], services[0])):
        async with rig.claim() as claim:
            await rig.client.by(one).prepared(claim.ref)
            try:
                await rig.client.by(other).unprepared(claim.ref)
            except PluginError as e:
                return Failed(f"prepared by {one}, unprepared by {other}: {e.message}")
            if left := rig.cdi.files() - before:
                names = ", ".join(sorted(map(str, left)))
                return Failed(f"prepared by {one}, unprepared by {other}; left over: {names}")
    return Passed()


@checks.add(
    "DRA-UNPREP-10",
    "Its directory has nothing of the claim any more",
    rule="what a driver wrote for a claim goes with it, device metadata above all: claims come and go for "
    "as long as the node is there",
    source=sources.KEP_5304,
    how=f"{_HOW}; find plugins -name '*UID*' -o -name '*NAME*'",
)
async def removes_data(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        await rig.client.unprepared(claim.ref)
        left = sorted(_named(rig, claim))
    if not left:
        return Passed()
    seen = f"left over: {', '.join(map(str, left[:5]))}"
    return Failed(seen) if any(_METADATA in path.parts for path in left) else Warned(seen)


_METADATA = "dra-device-metadata"  # the directory of the Go helper


def _named(rig: DraRig, claim: MadeClaim) -> set[Path]:
    """What is named after the claim; what a file of all claims says of it is the driver's own affair."""
    own = rig.greeting.path.parent
    places = [rig.places.plugins, *([own] if own.name == rig.name else [])]
    walks = (walk for each in places for walk in os.walk(each))
    found = (Path(folder, name) for folder, folders, files in walks for name in (*folders, *files))
    return {path for path in found if claim.ref.uid in path.name or claim.name in path.name}
