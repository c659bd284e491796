"""What a driver answers when a claim is to be prepared, and which claims it refuses."""

from contextlib import suppress
from typing import Any
from uuid import uuid4

from devlet.errors import PluginError, PluginRefused
from devlet.objects.documents import Document
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks import wire
from devlet.sanity.checks.dra.answers import ids_of, line, same
from devlet.sanity.claim_maker import Want
from devlet.sanity.dra_client import SERVICES, Ref
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.DRA_API)

_MOST = 32  # devices of a claim
_HOW = "make a ResourceClaim with an allocation of its devices, and call NodePrepareResources"


@checks.add(
    "DRA-PREP-1",
    "It prepares a claim that was allocated",
    rule="NodePrepareResources makes the devices of a claim ready, and answers with them",
    how=_HOW,
)
async def prepares(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        devices = await rig.client.prepared(claim.ref)
    return Passed() if devices else Warned("it answers without devices: containers get nothing")


@checks.add(
    "DRA-PREP-2",
    "Its devices are those of the allocation",
    rule="Device.pool_name and device_name name a device that the claim was given, and nothing else",
    how=f"{_HOW}; compare the answer with status.allocation",
)
async def allocated_devices(rig: DraRig) -> Outcome:
    async with rig.claim(Want(offers=rig.maker.take_up_to(2))) as claim:
        answered = {(each.pool_name, each.device_name) for each in await rig.client.prepared(claim.ref)}
    if foreign := answered - claim.devices:
        return Failed(f"the claim was given {_names(claim.devices)}, and the answer has {_names(foreign)}")
    if missing := claim.devices - answered:
        return Warned(f"the claim was given {_names(missing)}, which is not in the answer")
    return Passed()


@checks.add(
    "DRA-PREP-3",
    "Each device is of the request that it was allocated for",
    rule="a container that uses one request of a claim gets the devices whose request_names have it, or are empty",
    how=f"{_HOW}, with two requests; compare request_names",
)
async def request_names(rig: DraRig) -> Outcome:
    async with rig.claim(Want("first"), Want("second")) as claim:
        devices = await rig.client.prepared(claim.ref)
    wanted = {(each["pool"], each["device"]): each["request"] for each in claim.results}
    for each in devices:
        request = wanted.get((each.pool_name, each.device_name))
        if request and list(each.request_names) != [request]:
            found = ", ".join(each.request_names) or "all requests"
            return Failed(f"{each.device_name} was allocated for request {request}, and answered for {found}")
    return Passed()


@checks.add(
    "DRA-PREP-4",
    "An alternative is answered under the name of its request",
    rule="containers name requests, and never one of their alternatives: request_names has no slash",
    how=f"{_HOW}, with a request that has firstAvailable: the allocation says request/alternative",
)
async def alternatives(rig: DraRig) -> Outcome:
    async with rig.claim(Want("main", alternative="sub")) as claim:
        devices = await rig.client.prepared(claim.ref)
    found = sorted({name for each in devices for name in each.request_names})
    if found not in ([], ["main"]):
        return Failed(f"allocated for main/sub, and answered for {', '.join(found)}")
    return Passed()


@checks.add(
    "DRA-PREP-5",
    "It answers the same each time",
    rule="NodePrepareResources is called again after a kubelet's restart, or if its answer was lost: it is idempotent",
    source=sources.KEP_4381,
    how=f"{_HOW} twice",
)
async def idempotent(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        first = await rig.client.prepared(claim.ref)
        try:
            second = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"prepared once; the second time {e.message}")
    return same(first, second, "one call after the other")


@checks.add(
    "DRA-PREP-6",
    "A claim that does not exist is refused",
    rule="the API server says what a claim was given; what was merely asked for is not prepared",
    source=sources.KEP_4381,
    how="call NodePrepareResources with a claim that is not in the API",
)
async def unknown(rig: DraRig) -> Outcome:
    ref = Ref("default", "sanity-nobody", str(uuid4()))
    return await _refused(rig, ref, "a claim that does not exist")


@checks.add(
    "DRA-PREP-7",
    "A claim with another UID is refused",
    rule="a claim of the same name may be another one by now: its UID has to be that of the call",
    source=sources.KEP_4381,
    how=f"{_HOW} with another UID",
)
async def other_uid(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        return await _refused(rig, claim.ref._replace(uid=str(uuid4())), "a claim with another UID")


@checks.add(
    "DRA-PREP-8",
    "A claim without allocation is refused",
    rule="only what status.allocation says is a device of the claim",
    source=sources.KEP_4381,
    how="make a ResourceClaim without status, and call NodePrepareResources",
)
async def unallocated(rig: DraRig) -> Outcome:
    async with rig.claim(allocated=False) as claim:
        return await _refused(rig, claim.ref, "a claim that was not allocated")


async def _refused(rig: DraRig, ref: Ref, what: str) -> Outcome:
    try:
        devices = await rig.client.prepared(ref)
    except PluginRefused as e:
        return Passed(e.message[:200])
    finally:
        with suppress(PluginError):
            await rig.client.unprepare(ref)
    return Failed(f"{what} was prepared, with {[line(each) for each in devices] or 'no devices'}")


@checks.add(
    "DRA-PREP-9",
    "Devices of other drivers are left to them",
    rule="a claim may have devices of several drivers: each answers for those with its own name",
    source=sources.RESOURCE_API,
    how=f"{_HOW}; the allocation has a result of another driver, too",
)
async def other_drivers(rig: DraRig) -> Outcome:
    foreign: Document = {"request": "other", "driver": "other.example.com", "pool": "other", "device": "other-0"}
    async with rig.claim(more=[foreign]) as claim:
        devices = await rig.client.prepared(claim.ref)
    found = {(each.pool_name, each.device_name) for each in devices} - claim.devices
    return Failed(f"it answers with {_names(found)}, of another driver") if found else Passed()


@checks.add(
    "DRA-PREP-10",
    "Parameters for other drivers are left to them",
    rule="an allocation has the parameters of all drivers: opaque.driver says for whom they are",
    source=sources.RESOURCE_API,
    how=f"{_HOW}; the allocation has config for another driver, too",
)
async def other_parameters(rig: DraRig) -> Outcome:
    foreign = rig.maker.config(_STRANGE, "other.example.com")
    async with rig.claim(configs=[*rig.maker.configs, foreign]) as claim:
        try:
            await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"with parameters for other.example.com: {e.message}")
    return Passed()


@checks.add(
    "DRA-PREP-11",
    "Parameters that it does not understand are refused",
    rule="a user who mistypes a parameter should hear of it, and not get a device that is set up otherwise",
    source=sources.PRACTICE,
    how=f"{_HOW}; the allocation has config for it of a kind that nobody knows",
)
async def strange_parameters(rig: DraRig) -> Outcome:
    async with rig.claim(configs=[rig.maker.config(_STRANGE)]) as claim:
        try:
            await rig.client.prepared(claim.ref)
        except PluginRefused:
            return Passed()
    return Warned(f"parameters {_STRANGE} were taken")


_STRANGE: Document = {"apiVersion": "sanity.devlet.dev/v1", "kind": "NobodyKnows", "field": {"of": [1]}}


@checks.add(
    "DRA-PREP-12",
    "Its own parameters are taken",
    rule="status.allocation has the parameters of class and claim, for all requests or for some",
    source=sources.RESOURCE_API,
    how=f"{_HOW}; the allocation has config for it, for one request only, and from class and claim",
)
async def parameters(rig: DraRig) -> Outcome:
    if not rig.configs:
        raise CannotTell("nobody said which parameters it takes: give --config FILE")
    configs = [
        {**rig.maker.config(each), "source": source, "requests": requests}
        for each in rig.configs
        for source, requests in (("FromClass", []), ("FromClaim", ["request"]))
    ]
    async with rig.claim(configs=configs) as claim:
        await rig.client.prepared(claim.ref)
    return Passed()


@checks.add(
    "DRA-PREP-13",
    "A device that another claim has is refused",
    rule="schedulers make mistakes, and two of them more: a driver should not give one device to two claims",
    source=sources.PRACTICE,
    how=f"{_HOW}; then do the same for another claim with the same device",
)
async def held(rig: DraRig) -> Outcome:
    offers = rig.maker.take(1, shared=False)
    async with rig.claim(Want(offers=offers)) as first, rig.claim(Want(offers=offers)) as second:
        await rig.client.prepared(first.ref)
        try:
            await rig.client.prepared(second.ref)
        except PluginRefused:
            return Passed()
    return Warned(f"{offers[0].name} is in two claims, and both were prepared")


@checks.add(
    "DRA-PREP-14",
    "A share of a device is answered as such",
    rule="Device.share_id (v1) tells shares of one device apart: it is that of the allocation",
    source=sources.KEP_5075,
    how=f"{_HOW}, by v1, with a device that has allowMultipleAllocations",
)
async def shares(rig: DraRig) -> Outcome:
    if "v1.DRAPlugin" not in rig.greeting.versions:
        raise CannotTell("v1beta1 has no shares")
    offers = rig.maker.take(1, shared=True)
    async with rig.claim(Want(offers=offers, shares=2)) as claim:
        devices = await rig.client.by("v1.DRAPlugin").prepared(claim.ref)
        wanted = {each["shareID"] for each in claim.results}
        if (found := {each.share_id for each in devices}) != wanted:
            return Failed(f"the shares are {_some(wanted)}, and the answer has {_some(found)}")
    return Passed()


@checks.add(
    "DRA-PREP-15",
    "All its services answer the same",
    rule="v1 and v1beta1 are the same but for shares: a claim may be prepared by one and again by the other",
    how=f"{_HOW} of both services, and compare",
)
async def same_by_all(rig: DraRig) -> Outcome:
    services = [each for each in rig.greeting.versions if each in SERVICES]
    if len(services) < 2:
        raise CannotTell("it offers one service only")
    async with rig.claim() as claim:
        first, second = [await rig.client.by(each).prepared(claim.ref) for each in services[:2]]
    return same(_shared(first), _shared(second), f"by {services[0]} and by {services[1]}")


def _shared(devices: list[Any]) -> list[Any]:
    """Without what only v1 has."""
    for each in devices:
        if "share_id" in each.DESCRIPTOR.fields_by_name:
            each.ClearField("share_id")
    return devices


@checks.add(
    "DRA-PREP-16",
    "Long names are no problem",
    rule="names of claims have up to 253 characters, with dots: too many for many a file or variable",
    source=sources.PRACTICE,
    how=f"{_HOW}; the claim's name has 253 characters, its namespace and request 63",
)
async def long_names(rig: DraRig) -> Outcome:
    name = ".".join(["sanity" + "x" * 57] * 3) + "." + "y" * 61
    async with rig.claim(Want("r" * 63), name=name, namespace="n" * 63) as claim:
        try:
            devices = await rig.client.prepared(claim.ref)
            if missing := rig.cdi.missing(ids_of(devices)):
                return Failed(f"a claim whose name has {len(name)} characters: no CDI device {missing}")
            await rig.client.unprepared(claim.ref)
        except PluginError as e:
            return Failed(f"a claim whose name has {len(name)} characters: {e.message}")
    return Passed()


@checks.add(
    "DRA-PREP-17",
    "Claims of the same name in two namespaces are two claims",
    rule="a claim is known by its UID: names repeat in other namespaces, and after it was deleted",
    source=sources.KEP_4381,
    how=f"{_HOW} for claims with the same name in two namespaces",
)
async def namespaces(rig: DraRig) -> Outcome:
    async with (
        rig.claim(name="sanity-twin") as first,
        rig.claim(name="sanity-twin", namespace="sanity-other") as second,
    ):
        for claim in (first, second):
            devices = await rig.client.prepared(claim.ref)
            if {(each.pool_name, each.device_name) for each in devices} - claim.devices:
                return Failed(f"{claim.ref.namespace}/{claim.name} was answered with the devices of its twin")
        await rig.client.unprepared(first.ref)
        devices = await rig.client.prepared(second.ref)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"one twin was unprepared, and the other's CDI device is gone: {missing}")
    return Passed()


@checks.add(
    "DRA-PREP-18",
    "A claim that took the place of another is a new one",
    rule="a claim that was deleted and made again has another UID and other devices, whatever is left of the old one",
    source=sources.KEP_4381,
    how=f"{_HOW}; delete the claim, make one of the same name with another device, and call it again",
)
async def replaced(rig: DraRig) -> Outcome:
    async with rig.claim(name="sanity-reborn") as first:
        await rig.client.prepared(first.ref)
        await rig.maker.delete(first.ref)
        async with rig.claim(name="sanity-reborn") as second:
            devices = await rig.client.prepared(second.ref)
            if {(each.pool_name, each.device_name) for each in devices} - second.devices:
                return Failed(f"it was given {_names(second.devices)}, and is answered as the one before it")
            await rig.client.unprepared(first.ref)
            if missing := rig.cdi.missing(ids_of(devices)):
                return Failed(f"the old claim was unprepared, and the new one lost {missing}")
    return Passed()


@checks.add(
    "DRA-PREP-19",
    "Its answers have at most 4 MiB",
    rule="gRPC receives at most 4 MiB by default: a longer answer is an error for the kubelet, and the pod waits",
    source=sources.GRPC,
    how=f"{_HOW}, with as many devices as a claim may have; add up the bytes of the answer",
)
async def answer_size(rig: DraRig) -> Outcome:
    async with rig.claim(Want(offers=rig.maker.take_up_to(_MOST))) as claim:
        return wire.fits(await rig.client.prepare(claim.ref), f"the answer for {len(claim.devices)} devices")


def _names(devices: set[tuple[str, str]]) -> str:
    return ", ".join(f"{pool or '(no pool)'}/{device or '(no device)'}" for pool, device in sorted(devices))


def _some(texts: set[str]) -> str:
    return ", ".join(sorted(each or "none" for each in texts)[:5]) or "none"
