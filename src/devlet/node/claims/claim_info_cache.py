"""The claim info cache: which pods use each claim on this node, and what its drivers answered. As in the checkpoint.

A driver's devices are None until it has answered, and a list afterwards, which may be empty. That is how the file shows
after a crash which drivers still have to be called. Entries are immutable and are replaced, so each is encoded once.

Drivers keep state of their own, which a reboot may erase. So an answer from before the last start of devlet is good
enough for containers that run, but the driver is called again before other containers start. A driver that was called
since then is `confirmed`.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from devlet.node.claims.device_index import Allocated, DeviceIndex
from devlet.node.claims.records import ClaimKey, DriverPart
from devlet.objects.identifiers import ClaimName, ClaimUID, DeviceIdentity, DeviceName, DriverName, PodUID, PoolName
from devlet.objects.types.claim import DeviceResult, PreparedDevice
from devlet.state.claim_entry import ClaimEntry, Encoder, by_name

__all__ = ["ClaimInfoCache", "identities", "parts"]

Devices = tuple[PreparedDevice, ...]
Results = tuple[DeviceResult, ...]

# A file may contain a claim without pods. It is treated as if a pod that does not exist used it, and cleaned up with
# it.
_NO_PODS = frozenset({""})


class ClaimInfoCache:
    """`devices` is an index of the devices that the claims have."""

    def __init__(self) -> None:
        self.devices = DeviceIndex()
        self._entries: dict[ClaimKey, ClaimEntry] = {}
        self._pods: dict[PodUID, set[ClaimKey]] = {}
        self._confirmed: dict[ClaimKey, dict[DriverName, Results]] = {}
        self._unverified: set[ClaimKey] = set()  # from a damaged file
        self._allocated: dict[ClaimKey, Allocated] = {}
        self._encoder = Encoder()
        self._is_new = True

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[ClaimKey, ClaimEntry]]:
        return iter(self._entries.items())

    def __getitem__(self, key: ClaimKey) -> ClaimEntry:
        return self._entries[key]

    def get(self, key: ClaimKey) -> ClaimEntry | None:
        return self._entries.get(key)

    def pods(self) -> frozenset[PodUID]:
        return frozenset(self._pods)

    def claims_of(self, pod: PodUID) -> frozenset[ClaimKey]:
        return frozenset(self._pods.get(pod, ()))

    def is_prepared(self, key: ClaimKey, pod: PodUID) -> bool:
        """Return True if the pod refers to the claim and all of its drivers have answered, even before a restart."""
        entry = self._entries.get(key)
        if entry is None or pod not in (entry.pods or ()) or key in self._unverified:
            return False
        return all(devices is not None for devices in (entry.drivers or {}).values())

    def is_confirmed(self, key: ClaimKey, driver: DriverName) -> bool:
        return driver in self._confirmed.get(key, {})

    def is_outdated(self, key: ClaimKey, results: Mapping[DriverName, Results]) -> bool:
        """Return True if a driver has prepared other devices than these, which the claim has now."""
        confirmed = self._confirmed.get(key, {})
        if any(known != results.get(driver) for driver, known in confirmed.items()):
            return True
        now = {result.identity for driver in results.values() for result in driver}
        return any(each.device and each not in now for each in identities(self._entries[key]))

    def has_allocation(self, key: ClaimKey) -> bool:
        """Return True if it is known what was allocated to the claim when it was prepared."""
        return key in self._allocated

    def users(self, devices: Iterable[DeviceIdentity]) -> frozenset[PodUID]:
        """Return the pods that have one of these devices, or a share of it."""
        wanted = frozenset(devices)
        found: set[str] = set()
        for entry in self._entries.values():
            if any(identity in wanted for identity in identities(entry)):
                found |= entry.pods or frozenset()
        return frozenset(map(PodUID, found))

    # Changes

    def add_reference(self, key: ClaimKey, uid: ClaimUID, drivers: Iterable[DriverName], pod: PodUID) -> bool:
        """Record that the pod is about to use the claim with these drivers. Return True if that is new."""
        before = self._entries.get(key)
        known: Mapping[str, Devices | None] = before.drivers or {} if before else {}
        missing = {str(name): None for name in drivers if name not in known}
        pods = before.pods or frozenset() if before else frozenset()
        if before is not None and pod in pods and not missing:
            return False
        self._put(key, ClaimEntry(uid, key.name, key.namespace, pods | {pod}, {**known, **missing}))
        return True

    def allocate(self, key: ClaimKey, results: Mapping[DriverName, Results]) -> None:
        """Record which devices are about to be prepared for the claim, or were prepared before a restart."""
        self._allocated[key] = dict(results)
        self.devices.put(key, self._entries[key], self._allocated[key])

    def delete_reference(self, key: ClaimKey, pod: PodUID) -> None:
        """Record that the pod no longer uses the claim. Remove the entry with its last pod."""
        entry = self._entries[key]
        left = (entry.pods or frozenset()) - {pod}
        if left:
            self._put(key, structs.replace(entry, pods=left))
        else:
            self.remove(key)

    def roll_back(self, key: ClaimKey, before: ClaimEntry | None) -> None:
        """Restore an earlier entry, because its successor could not be saved."""
        if before is None:
            self.remove(key)
        else:
            self._put(key, before)

    def confirm(self, key: ClaimKey, driver: DriverName, devices: Devices, results: Results) -> None:
        """Record that the driver has prepared these devices for these results. Replace its earlier answer."""
        entry = self._entries[key]
        self._put(key, structs.replace(entry, drivers={**(entry.drivers or {}), driver: devices}))
        self._confirmed.setdefault(key, {})[driver] = results

    def unconfirm(self, key: ClaimKey, driver: DriverName) -> None:
        """Record that the driver is asked to unprepare the claim. It may do so without answering, so it has to prepare
        the claim again before a container can start with it."""
        self._confirmed.get(key, {}).pop(driver, None)

    def delete_driver(self, key: ClaimKey, driver: DriverName) -> None:
        """Record that the driver has unprepared the claim."""
        entry = self._entries[key]
        left = {name: devices for name, devices in (entry.drivers or {}).items() if name != driver}
        self._put(key, structs.replace(entry, drivers=left))
        self.unconfirm(key, driver)

    def remove(self, key: ClaimKey) -> None:
        entry = self._entries.pop(key)
        self._confirmed.pop(key, None)
        self._unverified.discard(key)
        self._allocated.pop(key, None)
        self.devices.remove(key)
        self._index(key, entry.pods or _NO_PODS, frozenset())

    def _put(self, key: ClaimKey, entry: ClaimEntry) -> None:
        before = self._entries.get(key)
        self._entries[key] = entry
        self.devices.put(key, entry, self._allocated.get(key, {}))
        self._index(key, (before.pods or _NO_PODS) if before else frozenset(), entry.pods or _NO_PODS)
        self._is_new = False

    def _index(self, key: ClaimKey, before: frozenset[str], after: frozenset[str]) -> None:
        for pod in map(PodUID, after - before):
            self._pods.setdefault(pod, set()).add(key)
        for pod in map(PodUID, before - after):
            self._pods[pod].discard(key)
            if not self._pods[pod]:
                del self._pods[pod]

    # The file

    def content(self) -> bytes:
        return self._encoder.encode(None if self._is_new else tuple(self._entries.values()))

    def restore(self, claims: Iterable[ClaimEntry] | None, *, damaged: bool = False) -> None:
        """Fill an empty cache with the claims of a file. Anything in a damaged file may be wrong: its entries are good
        enough to clean up with, and `correct` replaces them when a pod uses the claim."""
        for (namespace, name), entry in by_name(claims or ()).items():
            key = ClaimKey(namespace, ClaimName(name))
            self._put(key, _without_devices(entry) if damaged else entry)
            if damaged:
                self._unverified.add(key)
        self._is_new = claims is None

    def correct(self, key: ClaimKey, uid: ClaimUID, drivers: Iterable[DriverName]) -> None:
        """Replace what a damaged file says about the claim. Do nothing if the entry is not from a damaged file."""
        if key in self._unverified:
            self._unverified.remove(key)
            self._put(key, structs.replace(self._entries[key], uid=uid, drivers={str(name): None for name in drivers}))


def parts(entry: ClaimEntry) -> tuple[DriverPart, ...]:
    """Return the part of each driver, sorted by name."""
    drivers = entry.drivers or {}
    return tuple(DriverPart(DriverName(name), drivers[name]) for name in sorted(drivers))


def _without_devices(entry: ClaimEntry) -> ClaimEntry:
    return structs.replace(entry, drivers=dict.fromkeys(entry.drivers or {}))


def identities(entry: ClaimEntry) -> Iterator[DeviceIdentity]:
    """Yield the devices that the drivers have prepared for the claim."""
    for driver, devices in (entry.drivers or {}).items():
        for device in devices or ():
            yield DeviceIdentity(DriverName(driver), PoolName(device.pool), DeviceName(device.device))
