"""An index of the claim info cache: which claims have each device, and which use each CDI device. Pure.

The devices of a claim are those that its drivers answered, as in the checkpoint, and those that were allocated to it,
as far as that is known. Allocations are recorded before a driver is called, so two claims cannot be prepared with the
same device at the same time.

The checkpoint does not contain which devices were allocated, nor whether for admin access. After a restart, that is
read from the cluster when it matters. Until then, a driver that has not answered with any device may have prepared any
of its devices.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

from devlet.node.claims.records import ClaimKey
from devlet.objects.claims.overlaps import Holding, holdings_of
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.claim import DeviceResult
from devlet.state.claim_entry import ClaimEntry

__all__ = ["Allocated", "DeviceIndex"]

Allocated = Mapping[DriverName, tuple[DeviceResult, ...]]

K = TypeVar("K", bound=Hashable)


class _Held(Struct, frozen=True):
    devices: Mapping[DeviceIdentity, tuple[Holding, ...]]
    unclear: frozenset[DriverName]  # drivers that may have prepared any of their devices
    cdi: Mapping[str, frozenset[DeviceIdentity]]


class DeviceIndex:
    """Claims by device, by driver and by CDI device."""

    def __init__(self) -> None:
        self._held: dict[ClaimKey, _Held] = {}
        self._by_device: dict[DeviceIdentity, set[ClaimKey]] = {}
        self._by_driver: dict[DriverName, set[ClaimKey]] = {}
        self._by_cdi: dict[str, set[ClaimKey]] = {}

    def put(self, key: ClaimKey, entry: ClaimEntry, allocated: Allocated) -> None:
        self.remove(key)
        held = self._held[key] = _held(entry, allocated)
        _add(self._by_device, held.devices, key)
        _add(self._by_driver, held.unclear, key)
        _add(self._by_cdi, held.cdi, key)

    def remove(self, key: ClaimKey) -> None:
        if (held := self._held.pop(key, None)) is not None:
            _discard(self._by_device, held.devices, key)
            _discard(self._by_driver, held.unclear, key)
            _discard(self._by_cdi, held.cdi, key)

    def unclear(self, driver: DriverName) -> frozenset[ClaimKey]:
        """Return the claims that may have any device of the driver."""
        return frozenset(self._by_driver.get(driver, ()))

    def holders(self, wanted: Holding) -> frozenset[ClaimKey]:
        """Return the claims whose devices exclude this one."""
        keys = self._by_device.get(wanted.device, ())
        return frozenset(key for key in keys if any(map(wanted.excludes, self._held[key].devices[wanted.device])))

    def users_of(self, cdi: str) -> frozenset[ClaimKey]:
        """Return the claims that use the CDI device of this name."""
        return frozenset(self._by_cdi.get(cdi, ()))

    def cdi(self, key: ClaimKey) -> Mapping[str, frozenset[DeviceIdentity]]:
        """Return the CDI devices of a claim, each with the devices that it stands for."""
        return self._held[key].cdi


def _held(entry: ClaimEntry, allocated: Allocated) -> _Held:
    devices: dict[DeviceIdentity, tuple[Holding, ...]] = {}
    unclear: set[DriverName] = set()
    cdi: dict[str, frozenset[DeviceIdentity]] = {}
    for driver, answered in (entry.drivers or {}).items():
        name = DriverName(driver)
        known = allocated.get(name)
        for holding in holdings_of(known or ()):
            devices[holding.device] = (*devices.get(holding.device, ()), holding)
        for device in answered or ():
            identity = DeviceIdentity(name, PoolName(device.pool), DeviceName(device.device))
            if device.pool and device.device:
                devices.setdefault(identity, (Holding(identity, device.share),))
            for each in device.cdi_devices or ():
                cdi[each] = cdi.get(each, frozenset()) | {identity}
        if known is None and not any(device.pool and device.device for device in answered or ()):
            unclear.add(name)
    return _Held(devices, frozenset(unclear), cdi)


def _add(index: dict[K, set[ClaimKey]], values: Iterable[K], key: ClaimKey) -> None:
    for value in values:
        index.setdefault(value, set()).add(key)


def _discard(index: dict[K, set[ClaimKey]], values: Iterable[K], key: ClaimKey) -> None:
    for value in values:
        index[value].discard(key)
        if not index[value]:
            del index[value]
