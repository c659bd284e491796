"""Unpreparing claims."""

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
    "A prepared claim can be unprepared",
    rule="a pod does not terminate before NodeUnprepareResources has succeeded",
    how=_HOW,
)
async def unprepares(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        await rig.client.unprepared(claim.ref)
    return Passed()


@checks.add(
    "DRA-UNPREP-2",
    "CDI files are removed with the claim",
    rule="a leftover file is read by every runtime for every container, and no other program removes it",
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
    "Unprepare is idempotent",
    rule="NodeUnprepareResources is called again if its response was lost or another driver failed: it is idempotent",
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
            return Failed(f"unpreparing an unprepared claim again failed: {e.message}")
    return Passed()


@checks.add(
    "DRA-UNPREP-4",
    "Unpreparing an unknown claim succeeds",
    rule="a kubelet unprepares every claim that it may have prepared, even if the call was never answered",
    how="call NodeUnprepareResources with a claim that was never prepared",
)
async def unknown(rig: DraRig) -> Outcome:
    try:
        await rig.client.unprepared(Ref("default", "sanity-nobody", str(uuid4())))
    except PluginError as e:
        return Failed(f"unpreparing a claim that was never prepared failed: {e.message}")
    return Passed()


@checks.add(
    "DRA-UNPREP-5",
    "A claim that was deleted from the API can be unprepared",
    rule="a claim may have been force-deleted, and its devices must be released all the same",
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
            return Failed(f"a claim that was deleted from the API cannot be unprepared: {e.message}")
        left = rig.cdi.files() - before
    if left:
        return Failed(f"unpreparing a claim that was deleted from the API left {', '.join(map(str, left))} behind")
    return Passed()


@checks.add(
    "DRA-UNPREP-6",
    "An unprepared claim can be prepared again",
    rule="a claim may outlive its pods and is prepared again for the next one",
    how=f"{_HOW}, and NodePrepareResources again",
)
async def again(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        await rig.client.unprepared(claim.ref)
        try:
            devices = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"preparing a claim again after it was unprepared failed: {e.message}")
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"a claim was prepared again, but CDI device {missing} does not exist")
    return Passed()


@checks.add(
    "DRA-UNPREP-7",
    "An unprepared device is free for another claim",
    rule="the scheduler allocates a device to the next claim as soon as the pod has terminated",
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
                return Failed(
                    f"{offers[0].name} was unprepared for {first.name}, but {second.name} cannot get it: {e.message}"
                )
    return Passed()


@checks.add(
    "DRA-UNPREP-8",
    "Unpreparing a claim does not affect others",
    rule="a claim is unprepared because its own pods have terminated; pods of other claims still run",
    how="call NodePrepareResources for two claims, NodeUnprepareResources for one, and inspect the CDI directory",
)
async def others_stay(rig: DraRig) -> Outcome:
    async with rig.claims(2) as (first, second):
        await rig.client.prepared(first.ref)
        devices = await rig.client.prepared(second.ref)
        await rig.client.unprepared(first.ref)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"unpreparing {first.name} removed CDI device {missing} of {second.name}")
    return Passed()


@checks.add(
    "DRA-UNPREP-9",
    "A claim prepared through one service can be unprepared through another",
    rule="kubelets use the newest service that they know, and may be upgraded or downgraded while a pod runs: "
    "PluginInfo.supported_versions",
    source=sources.REGISTRATION_API,
    how="call NodePrepareResources of one service, NodeUnprepareResources of the other; inspect the CDI directory",
)
async def by_all(rig: DraRig) -> Outcome:
    services = [each for each in rig.greeting.versions if each in SERVICES]
    if len(services) < 2:
        raise CannotTell("the driver offers only one service")
    before = rig.cdi.files()
    for one, other in ((services[0], services[1]), (services[1], services[0])):
        async with rig.claim() as claim:
            await rig.client.by(one).prepared(claim.ref)
            try:
                await rig.client.by(other).unprepared(claim.ref)
            except PluginError as e:
                return Failed(f"a claim prepared through {one} cannot be unprepared through {other}: {e.message}")
            if left := rig.cdi.files() - before:
                names = ", ".join(sorted(map(str, left)))
                return Failed(f"unpreparing a claim through {other}, prepared through {one}, left {names} behind")
    return Passed()


@checks.add(
    "DRA-UNPREP-10",
    "Unprepare removes the claim's data",
    rule="what a driver writes for a claim is removed with it, device metadata in particular, because a node "
    "outlives many claims",
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
    """Return the files named after the claim. The content of files for all claims is up to the driver."""
    own = rig.greeting.path.parent
    places = [rig.places.plugins, *([own] if own.name == rig.name else [])]
    walks = (walk for each in places for walk in os.walk(each))
    found = (Path(folder, name) for folder, folders, files in walks for name in (*folders, *files))
    return {path for path in found if claim.ref.uid in path.name or claim.name in path.name}
