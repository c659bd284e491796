"""Preparing claims: the response of a driver, and the claims that it must refuse."""

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
_HOW = "create a ResourceClaim with an allocation of its devices and call NodePrepareResources"


@checks.add(
    "DRA-PREP-1",
    "An allocated claim can be prepared",
    rule="NodePrepareResources makes the devices of a claim ready and returns them",
    how=_HOW,
)
async def prepares(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        devices = await rig.client.prepared(claim.ref)
    return Passed() if devices else Warned("the response contains no devices, so containers get nothing")


@checks.add(
    "DRA-PREP-2",
    "The response names the allocated devices",
    rule="Device.pool_name and device_name name devices that are allocated to the claim, and no others",
    how=f"{_HOW}; compare the response with status.allocation",
)
async def allocated_devices(rig: DraRig) -> Outcome:
    async with rig.claim(Want(offers=rig.maker.take_up_to(2))) as claim:
        answered = {(each.pool_name, each.device_name) for each in await rig.client.prepared(claim.ref)}
    if foreign := answered - claim.devices:
        return Failed(f"the claim was allocated {_names(claim.devices)}, but the response has {_names(foreign)}")
    if missing := claim.devices - answered:
        return Warned(f"the claim was allocated {_names(missing)}, which is missing in the response")
    return Passed()


@checks.add(
    "DRA-PREP-3",
    "Each device is returned for its own request",
    rule="a container that uses one request of a claim gets the devices whose request_names contain it or are empty",
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
            return Failed(f"{each.device_name} was allocated for request {request}, but returned for {found}")
    return Passed()


@checks.add(
    "DRA-PREP-4",
    "An alternative is returned under the name of its request",
    rule="containers name requests, never their alternatives, so request_names contain no slash",
    how=f"{_HOW}, with a request that has firstAvailable: the allocation names request/alternative",
)
async def alternatives(rig: DraRig) -> Outcome:
    async with rig.claim(Want("main", alternative="sub")) as claim:
        devices = await rig.client.prepared(claim.ref)
    found = sorted({name for each in devices for name in each.request_names})
    if found not in ([], ["main"]):
        return Failed(f"a device allocated for main/sub was returned for {', '.join(found)}, expected main")
    return Passed()


@checks.add(
    "DRA-PREP-5",
    "Prepare is idempotent",
    rule="NodePrepareResources is called again after a kubelet restart, or if its response was lost: it is idempotent",
    source=sources.KEP_4381,
    how=f"{_HOW} twice",
)
async def idempotent(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        first = await rig.client.prepared(claim.ref)
        try:
            second = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"preparing a prepared claim again failed: {e.message}")
    return same(first, second, "in two consecutive calls")


@checks.add(
    "DRA-PREP-6",
    "Preparing a nonexistent claim fails",
    rule="a driver prepares what the API server says is allocated to the claim, not whatever a call names",
    source=sources.KEP_4381,
    how="call NodePrepareResources with a claim that is not in the API",
)
async def unknown(rig: DraRig) -> Outcome:
    ref = Ref("default", "sanity-nobody", str(uuid4()))
    return await _refused(rig, ref, "a nonexistent claim")


@checks.add(
    "DRA-PREP-7",
    "Preparing a claim with another UID fails",
    rule="a claim may have been replaced by another one of the same name, so its UID must match the call",
    source=sources.KEP_4381,
    how=f"{_HOW} with another UID",
)
async def other_uid(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        return await _refused(rig, claim.ref._replace(uid=str(uuid4())), "a claim with another UID")


@checks.add(
    "DRA-PREP-8",
    "Preparing an unallocated claim fails",
    rule="a claim has only the devices in status.allocation",
    source=sources.KEP_4381,
    how="create a ResourceClaim without status and call NodePrepareResources",
)
async def unallocated(rig: DraRig) -> Outcome:
    async with rig.claim(allocated=False) as claim:
        return await _refused(rig, claim.ref, "an unallocated claim")


async def _refused(rig: DraRig, ref: Ref, what: str) -> Outcome:
    try:
        devices = await rig.client.prepared(ref)
    except PluginRefused as e:
        return Passed(e.message[:200])
    finally:
        with suppress(PluginError):
            await rig.client.unprepare(ref)
    return Failed(f"{what} was prepared, with {[line(each) for each in devices] or 'no devices'}, expected an error")


@checks.add(
    "DRA-PREP-9",
    "Devices of other drivers are ignored",
    rule="a claim may have devices of several drivers: each driver handles the results with its own name",
    source=sources.RESOURCE_API,
    how=f"{_HOW}; the allocation also has a result of another driver",
)
async def other_drivers(rig: DraRig) -> Outcome:
    foreign: Document = {"request": "other", "driver": "other.example.com", "pool": "other", "device": "other-0"}
    async with rig.claim(more=[foreign]) as claim:
        devices = await rig.client.prepared(claim.ref)
    found = {(each.pool_name, each.device_name) for each in devices} - claim.devices
    return Failed(f"the response contains {_names(found)}, of another driver") if found else Passed()


@checks.add(
    "DRA-PREP-10",
    "Parameters for other drivers are ignored",
    rule="an allocation has the parameters for all drivers: opaque.driver names the driver that uses them",
    source=sources.RESOURCE_API,
    how=f"{_HOW}; the allocation also has config for another driver",
)
async def other_parameters(rig: DraRig) -> Outcome:
    foreign = rig.maker.config(_STRANGE, "other.example.com")
    async with rig.claim(configs=[*rig.maker.configs, foreign]) as claim:
        try:
            await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"a claim with parameters for other.example.com cannot be prepared: {e.message}")
    return Passed()


@checks.add(
    "DRA-PREP-11",
    "Unknown parameters are rejected",
    rule="a user who mistypes a parameter should get an error, not a device with another configuration",
    source=sources.PRACTICE,
    how=f"{_HOW}; the allocation has config for it of an unknown kind",
)
async def strange_parameters(rig: DraRig) -> Outcome:
    async with rig.claim(configs=[rig.maker.config(_STRANGE)]) as claim:
        try:
            await rig.client.prepared(claim.ref)
        except PluginRefused:
            return Passed()
    return Warned(f"the unknown parameters {_STRANGE} were accepted")


_STRANGE: Document = {"apiVersion": "sanity.devlet.dev/v1", "kind": "NobodyKnows", "field": {"of": [1]}}


@checks.add(
    "DRA-PREP-12",
    "The driver's own parameters are accepted",
    rule="status.allocation has parameters from the class and from the claim, for all requests or for some",
    source=sources.RESOURCE_API,
    how=f"{_HOW}; the allocation has config for it, for one request only, and from class and claim",
)
async def parameters(rig: DraRig) -> Outcome:
    if not rig.configs:
        raise CannotTell("the driver's parameters are not known: give them with --config FILE")
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
    "A device that another claim holds is refused",
    rule="schedulers make mistakes, especially if there are two: a driver should not give a device to two claims",
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
    return Warned(f"{offers[0].name} is allocated to two claims, and both were prepared, expected an error")


@checks.add(
    "DRA-PREP-14",
    "Shares of a device are returned with their share IDs",
    rule="Device.share_id (v1) distinguishes shares of a device and is copied from the allocation",
    source=sources.KEP_5075,
    how=f"{_HOW} through v1, with a device that has allowMultipleAllocations",
)
async def shares(rig: DraRig) -> Outcome:
    if "v1.DRAPlugin" not in rig.greeting.versions:
        raise CannotTell("the driver offers only v1beta1, which has no shares")
    offers = rig.maker.take(1, shared=True)
    async with rig.claim(Want(offers=offers, shares=2)) as claim:
        devices = await rig.client.by("v1.DRAPlugin").prepared(claim.ref)
        wanted = {each["shareID"] for each in claim.results}
        if (found := {each.share_id for each in devices}) != wanted:
            return Failed(f"the shares are {_some(wanted)}, but the response has {_some(found)}")
    return Passed()


@checks.add(
    "DRA-PREP-15",
    "All services return the same answer",
    rule="v1 and v1beta1 differ only in shares: a claim may be prepared through one and again through the other",
    how=f"{_HOW} of both services, and compare the responses",
)
async def same_by_all(rig: DraRig) -> Outcome:
    services = [each for each in rig.greeting.versions if each in SERVICES]
    if len(services) < 2:
        raise CannotTell("the driver offers only one service")
    async with rig.claim() as claim:
        first, second = [await rig.client.by(each).prepared(claim.ref) for each in services[:2]]
    return same(_shared(first), _shared(second), f"from {services[0]} and from {services[1]}")


def _shared(devices: list[Any]) -> list[Any]:
    """Remove the fields that only v1 has."""
    for each in devices:
        if "share_id" in each.DESCRIPTOR.fields_by_name:
            each.ClearField("share_id")
    return devices


@checks.add(
    "DRA-PREP-16",
    "Claims may have long names",
    rule="names of claims have up to 253 characters, including dots, which is too long for some file names",
    source=sources.PRACTICE,
    how=f"{_HOW}; the claim's name has 253 characters, its namespace and request 63",
)
async def long_names(rig: DraRig) -> Outcome:
    name = ".".join(["sanity" + "x" * 57] * 3) + "." + "y" * 61
    async with rig.claim(Want("r" * 63), name=name, namespace="n" * 63) as claim:
        try:
            devices = await rig.client.prepared(claim.ref)
            if missing := rig.cdi.missing(ids_of(devices)):
                return Failed(
                    f"a claim with a name of {len(name)} characters was prepared, without CDI device {missing}"
                )
            await rig.client.unprepared(claim.ref)
        except PluginError as e:
            return Failed(f"a claim whose name has {len(name)} characters cannot be prepared: {e.message}")
    return Passed()


@checks.add(
    "DRA-PREP-17",
    "Claims with the same name in two namespaces are independent",
    rule="a claim is identified by its UID: names repeat in other namespaces, and after a claim is deleted",
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
                return Failed(
                    f"the response for {claim.ref.namespace}/{claim.name} has devices of the claim with the same name"
                )
        await rig.client.unprepared(first.ref)
        devices = await rig.client.prepared(second.ref)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"unpreparing one of two claims with the same name removed CDI device {missing} of the other")
    return Passed()


@checks.add(
    "DRA-PREP-18",
    "A recreated claim is a new claim",
    rule="a claim that was deleted and created again has another UID and other devices than the old one",
    source=sources.KEP_4381,
    how=f"{_HOW}; delete the claim, create one of the same name with another device, and call it again",
)
async def replaced(rig: DraRig) -> Outcome:
    async with rig.claim(name="sanity-reborn") as first:
        await rig.client.prepared(first.ref)
        await rig.maker.delete(first.ref)
        async with rig.claim(name="sanity-reborn") as second:
            devices = await rig.client.prepared(second.ref)
            if {(each.pool_name, each.device_name) for each in devices} - second.devices:
                return Failed(f"the new claim was allocated {_names(second.devices)}, but the old one's were returned")
            await rig.client.unprepared(first.ref)
            if missing := rig.cdi.missing(ids_of(devices)):
                return Failed(f"unpreparing the old claim removed CDI device {missing} of the new one")
    return Passed()


@checks.add(
    "DRA-PREP-19",
    "A response is at most 4 MiB",
    rule="gRPC receives at most 4 MiB by default: a longer response is an error for the kubelet, and the pod waits",
    source=sources.GRPC,
    how=f"{_HOW}, with as many devices as a claim may have; add up the bytes of the response",
)
async def answer_size(rig: DraRig) -> Outcome:
    async with rig.claim(Want(offers=rig.maker.take_up_to(_MOST))) as claim:
        return wire.fits(await rig.client.prepare(claim.ref), f"the response for {len(claim.devices)} devices")


def _names(devices: set[tuple[str, str]]) -> str:
    return ", ".join(f"{pool or '(no pool)'}/{device or '(no device)'}" for pool, device in sorted(devices))


def _some(texts: set[str]) -> str:
    return ", ".join(sorted(each or "none" for each in texts)[:5]) or "none"
