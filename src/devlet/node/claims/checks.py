"""Checks around preparing a claim: whether a pod may use it, and whether a driver's answer fits its allocation. Pure.

A driver may answer with fewer devices than were allocated, or with none, as Kubernetes allows. Drivers of old APIs
answer with CDI devices only. If such a driver has one device in the claim, the answer can only be about that device.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, structs

from devlet.errors import InvalidInput, NotPrepared
from devlet.node.claims.pod_claims import PodClaim, base_request
from devlet.objects.identifiers import ClaimUID, DriverName
from devlet.objects.pods.claims import is_made_for, is_reserved_for
from devlet.objects.types.claim import DeviceResult, PreparedDevice, ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.plugins.dra import ClaimProblem
from devlet.runtime.cdi import names

__all__ = ["MAX_DEVICES", "MAX_TEXT", "UsableClaim", "check", "check_answer", "results_of"]

MAX_DEVICES = 1024  # of one driver in a claim; a claim has at most 32 results
MAX_TEXT = 64 << 10  # characters of all names in an answer: each claim is in every checkpoint


class UsableClaim(Struct, frozen=True):
    """A claim that a pod may use: the allocated devices of each driver, and the names of its requests."""

    uid: ClaimUID
    results: Mapping[DriverName, tuple[DeviceResult, ...]]
    requests: frozenset[str]


def check(claim: ResourceClaim, one: PodClaim, pod: Pod, *, workloads: bool = False) -> UsableClaim:
    """Return what there is to prepare. Raise NotPrepared if the pod may not use the claim; that may change."""
    name = one.key.name
    if one.must_be_owned and not is_made_for(claim, pod, workloads=workloads):
        raise NotPrepared(f"ResourceClaim {name} was not created for pod {pod.name} ({pod.uid})")
    if claim.status.allocation is None:
        raise NotPrepared(f"ResourceClaim {name} is not allocated")
    if not is_reserved_for(claim, pod, workloads=workloads):
        raise NotPrepared(
            f"pod {pod.name} ({pod.uid}) is not allowed to use ResourceClaim {name} ({claim.uid}): it is not reserved"
            " for the pod"
        )
    return _usable(claim)


def _usable(claim: ResourceClaim) -> UsableClaim:
    named = {request.name for request in claim.spec.devices.requests}
    requests = frozenset(named | {base_request(result.request) for result in claim.results})
    return UsableClaim(claim.uid, results_of(claim), requests)


def results_of(claim: ResourceClaim) -> Mapping[DriverName, tuple[DeviceResult, ...]]:
    """Return the devices that are allocated to the claim, by driver."""
    results: dict[DriverName, tuple[DeviceResult, ...]] = {}
    for result in claim.results:
        results[result.driver] = (*results.get(result.driver, ()), result)
    return results


def check_answer(
    devices: Sequence[PreparedDevice], driver: DriverName, claim: UsableClaim, *, legacy: bool = False
) -> tuple[PreparedDevice, ...] | ClaimProblem:
    """Return the devices of a driver's answer as they are stored, or what is wrong with the answer."""
    if len(devices) > MAX_DEVICES:
        return ClaimProblem(f"its answer has {len(devices)} devices, more than {MAX_DEVICES}")
    if (size := sum(map(_size, devices))) > MAX_TEXT:
        return ClaimProblem(f"its answer has names of {size} characters in all, more than {MAX_TEXT}")
    results = claim.results.get(driver, ())
    found = [_named(device, results) if legacy else device for device in devices]
    problems = [problem for device in found for problem in _problems(device, results, legacy=legacy)]
    if problems:
        return ClaimProblem("; ".join(dict.fromkeys(problems)))
    return tuple(map(_without_subrequests, found))


def _size(device: PreparedDevice) -> int:
    strings = (device.pool, device.device, device.share or "", *(device.requests or ()), *(device.cdi_devices or ()))
    return sum(map(len, strings))


def _named(device: PreparedDevice, results: Sequence[DeviceResult]) -> PreparedDevice:
    if len(results) != 1 or device.pool or device.device:
        return device
    return structs.replace(device, pool=results[0].pool, device=results[0].device)


def _problems(device: PreparedDevice, results: Sequence[DeviceResult], *, legacy: bool) -> Iterator[str]:
    what = f"device {device.pool}/{device.device}"
    if device.pool and device.device:
        yield from _not_allocated(device, what, results)
    elif not legacy:
        yield f"its answer has a device without {'pool' if not device.pool else 'name'} ({what})"
    requests = {base_request(result.request) for result in results}
    for request in device.requests or ():
        if base_request(request) not in requests:
            yield f"{what} is for request {request!r}, for which the claim has no device of this driver"
    yield from _cdi_problems(device, what)


def _not_allocated(device: PreparedDevice, what: str, results: Sequence[DeviceResult]) -> Iterator[str]:
    """Yield what is not allocated. Drivers that do not support shares leave the share out."""
    allocated = [result for result in results if (result.pool, result.device) == (device.pool, device.device)]
    if not allocated:
        names = ", ".join(sorted({f"{result.pool}/{result.device}" for result in results})) or "none"
        yield f"its answer has {what}, which is not allocated to the claim (allocated of this driver: {names})"
    elif device.share is not None and all(result.share_id != device.share for result in allocated):
        yield f"{what} has the share {device.share}, which is not allocated to the claim"


def _cdi_problems(device: PreparedDevice, what: str) -> Iterator[str]:
    known: set[str] = set()
    for name in device.cdi_devices or ():
        if name in known:
            yield f"{what} names the CDI device {name} twice"
        known.add(name)
        try:
            names.parse(name)
        except InvalidInput as e:
            yield f"{what}: {e}"


def _without_subrequests(device: PreparedDevice) -> PreparedDevice:
    if not any("/" in request for request in device.requests or ()):
        return device
    requests = tuple(dict.fromkeys(map(base_request, device.requests or ())))
    return structs.replace(device, requests=requests)
