"""What a driver answered for a claim, checked against the claim's allocation before it is believed. Pure.

A driver may answer with fewer devices than were allocated, or with none, as Kubernetes allows. Drivers of old APIs
answer with CDI devices alone. If such a driver has one device in the claim it can only be that."""

from collections.abc import Iterator, Sequence

from msgspec import structs

from devlet.errors import InvalidInput
from devlet.node.claims.checks import Usable, main
from devlet.objects.identifiers import DriverName
from devlet.objects.types.claim import DeviceResult, PreparedDevice
from devlet.plugins.dra import ClaimProblem
from devlet.runtime.cdi import names

__all__ = ["MAX_DEVICES", "MAX_TEXT", "checked"]

MAX_DEVICES = 1024  # of one driver in a claim; a claim has at most 32 results
MAX_TEXT = 64 << 10  # characters of all names in an answer: each claim is in every checkpoint


def checked(
    devices: Sequence[PreparedDevice], driver: DriverName, claim: Usable, *, legacy: bool = False
) -> tuple[PreparedDevice, ...] | ClaimProblem:
    """The devices as they are kept, or what is wrong with them."""
    if len(devices) > MAX_DEVICES:
        return ClaimProblem(f"its answer has {len(devices)} devices, more than {MAX_DEVICES}")
    if (size := sum(map(_size, devices))) > MAX_TEXT:
        return ClaimProblem(f"its answer has names of {size} characters in all, more than {MAX_TEXT}")
    results = claim.results.get(driver, ())
    found = [_named(device, results) if legacy else device for device in devices]
    problems = [problem for device in found for problem in _problems(device, results, legacy=legacy)]
    if problems:
        return ClaimProblem("; ".join(dict.fromkeys(problems)))
    return tuple(_kept(device) for device in found)


def _size(device: PreparedDevice) -> int:
    texts = (device.pool, device.device, device.share or "", *(device.requests or ()), *(device.cdi_devices or ()))
    return sum(map(len, texts))


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
    requests = {main(result.request) for result in results}
    for request in device.requests or ():
        if main(request) not in requests:
            yield f"{what} is for request {request!r}, for which the claim has no device of this driver"
    yield from _cdi_problems(device, what)


def _not_allocated(device: PreparedDevice, what: str, results: Sequence[DeviceResult]) -> Iterator[str]:
    """Drivers that know nothing of shares leave them out."""
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


def _kept(device: PreparedDevice) -> PreparedDevice:
    if not any("/" in request for request in device.requests or ()):
        return device
    requests = tuple(dict.fromkeys(map(main, device.requests or ())))
    return structs.replace(device, requests=requests)
