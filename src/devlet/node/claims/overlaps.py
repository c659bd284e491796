"""One device, one holder: what of an allocation or of a driver's answer belongs to another claim on this node. Pure.

Claims may share a device if the allocation says so: with admin access, or with a share of its capacity each. They may
name one CDI device if it is not the only one of either: many drivers add a device with common edits to each claim."""

from collections.abc import Iterator, Mapping, Sequence

from devlet.node.claims.book import Book
from devlet.node.claims.checks import Usable
from devlet.node.claims.records import ClaimKey
from devlet.objects.claims.overlaps import Holding, holdings_of
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.claim import PreparedDevice

__all__ = ["Overlap", "foreign_cdi", "overlaps", "to_learn"]

Overlap = tuple[ClaimKey, str, ClaimKey]
"""A claim, what it wants, and the claim that holds it."""


def overlaps(claims: Mapping[ClaimKey, Usable], book: Book) -> Iterator[Overlap]:
    """Devices of the claims that other claims hold, in the book or among these. A claim that has been prepared with its
    devices already keeps them."""
    seen: dict[DeviceIdentity, list[tuple[ClaimKey, Holding]]] = {}
    for key, claim in claims.items():
        for driver, results in claim.results.items():
            is_prepared = (entry := book.get(key)) and (entry.drivers or {}).get(driver) is not None
            for wanted in holdings_of(results):
                if not (wanted.admin or is_prepared):
                    others = {other for other, held in seen.get(wanted.device, ()) if wanted.excludes(held)}
                    others |= book.holdings.holders(wanted) | book.holdings.unclear(driver)
                    yield from ((key, str(wanted.device), other) for other in sorted(others - {key}))
                seen.setdefault(wanted.device, []).append((key, wanted))


def to_learn(claims: Mapping[ClaimKey, Usable], book: Book) -> list[ClaimKey]:
    """Claims from before a restart whose allocation has to be known to tell whether they hold the devices of these."""
    found = {
        other for _, _, other in overlaps(claims, book) if other not in claims and not book.knows_allocation(other)
    }
    return sorted(found)


def foreign_cdi(key: ClaimKey, driver: DriverName, devices: Sequence[PreparedDevice], book: Book) -> str:
    """Which CDI device of an answer is another claim's own; empty if none is."""
    for device in devices:
        mine = DeviceIdentity(driver, PoolName(device.pool), DeviceName(device.device))
        names = device.cdi_devices or ()
        used = {name: other for name in names if (other := _other_user(name, key, mine, book))}
        for name, other in used.items():
            if book[other].uid in name or len(used) == len(names) or _is_only_one(name, other, frozenset(names), book):
                what = f"device {device.pool}/{device.device}"
                return f"{what} has the CDI device {name}, which belongs to ResourceClaim {other}"
    return ""


def _other_user(name: str, key: ClaimKey, mine: DeviceIdentity, book: Book) -> ClaimKey | None:
    """A claim that uses it for another device."""
    others = sorted(book.holdings.users_of(name) - {key})
    return next((other for other in others if mine not in book.holdings.cdi(other)[name]), None)


def _is_only_one(name: str, other: ClaimKey, wanted: frozenset[str], book: Book) -> bool:
    """Whether the other claim would be left with a device that has no CDI device of its own."""
    cdi = book.holdings.cdi(other)
    for device in cdi[name]:
        own = {each for each, devices in cdi.items() if device in devices}
        if not any(len(book.holdings.users_of(each)) == 1 for each in own - wanted):
            return True
    return False
