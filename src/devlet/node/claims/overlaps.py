"""Find devices of an allocation, or of a driver's answer, that belong to another claim on this node. Pure.

Claims may share a device if the allocation says so: with admin access, or if each has a share of its capacity. They may
name the same CDI device if it is not the only one of either claim: many drivers add a device with common edits to each
claim.
"""

from collections.abc import Iterator, Mapping, Sequence

from devlet.node.claims.checks import UsableClaim
from devlet.node.claims.claim_info_cache import ClaimInfoCache
from devlet.node.claims.records import ClaimKey
from devlet.objects.claims.overlaps import Holding, holdings_of
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.claim import PreparedDevice

__all__ = ["Overlap", "cdi_overlap", "overlaps", "unknown_allocations"]

Overlap = tuple[ClaimKey, str, ClaimKey]
"""A claim, its device, and the other claim that has the device."""


def overlaps(claims: Mapping[ClaimKey, UsableClaim], cache: ClaimInfoCache) -> Iterator[Overlap]:
    """Yield the devices of these claims that another claim has, cached or among these. A claim that is already prepared
    with its devices keeps them."""
    seen: dict[DeviceIdentity, list[tuple[ClaimKey, Holding]]] = {}
    for key, claim in claims.items():
        for driver, results in claim.results.items():
            is_prepared = (entry := cache.get(key)) and (entry.drivers or {}).get(driver) is not None
            for wanted in holdings_of(results):
                if not (wanted.admin or is_prepared):
                    others = {other for other, held in seen.get(wanted.device, ()) if wanted.excludes(held)}
                    others |= cache.devices.holders(wanted) | cache.devices.unclear(driver)
                    yield from ((key, str(wanted.device), other) for other in sorted(others - {key}))
                seen.setdefault(wanted.device, []).append((key, wanted))


def unknown_allocations(claims: Mapping[ClaimKey, UsableClaim], cache: ClaimInfoCache) -> list[ClaimKey]:
    """Return the claims from before a restart whose allocation decides whether they have devices of these claims."""
    found = {
        other for _, _, other in overlaps(claims, cache) if other not in claims and not cache.has_allocation(other)
    }
    return sorted(found)


def cdi_overlap(key: ClaimKey, driver: DriverName, devices: Sequence[PreparedDevice], cache: ClaimInfoCache) -> str:
    """Return which CDI device of an answer belongs to another claim, as a sentence, or an empty string."""
    for device in devices:
        mine = DeviceIdentity(driver, PoolName(device.pool), DeviceName(device.device))
        names = device.cdi_devices or ()
        used = {name: other for name in names if (other := _other_user(name, key, mine, cache))}
        for name, other in used.items():
            if (
                cache[other].uid in name
                or len(used) == len(names)
                or _is_only_one(name, other, frozenset(names), cache)
            ):
                what = f"device {device.pool}/{device.device}"
                return f"{what} has the CDI device {name}, which belongs to ResourceClaim {other}"
    return ""


def _other_user(name: str, key: ClaimKey, mine: DeviceIdentity, cache: ClaimInfoCache) -> ClaimKey | None:
    """Return a claim that uses the CDI device for another device."""
    others = sorted(cache.devices.users_of(name) - {key})
    return next((other for other in others if mine not in cache.devices.cdi(other)[name]), None)


def _is_only_one(name: str, other: ClaimKey, wanted: frozenset[str], cache: ClaimInfoCache) -> bool:
    """Return True if the other claim would be left with a device that has no CDI device of its own."""
    cdi = cache.devices.cdi(other)
    for device in cdi[name]:
        own = {each for each, devices in cdi.items() if device in devices}
        if not any(len(cache.devices.users_of(each)) == 1 for each in own - wanted):
            return True
    return False
