"""The claims on this node: who uses each, and what its drivers answered. Kept in memory as it stands in the file.

A driver's devices are None until it has answered, and a list afterwards, be it an empty one: that is how the file tells
after a crash what still has to be asked. Entries are values that are replaced, so each is encoded once. Drivers keep
their own books, and a boot of the machine may empty them: what a driver did before the last start of devlet counts for
containers that run, and is asked for again before others start. Whoever was asked since then is `confirmed`."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from devlet.node.claims.holdings import Allocated, Holdings
from devlet.node.claims.records import ClaimKey, DriverPart
from devlet.objects.identifiers import ClaimName, ClaimUID, DeviceIdentity, DeviceName, DriverName, PodUID, PoolName
from devlet.objects.types.claim import DeviceResult, PreparedDevice
from devlet.state.claim_encoder import Encoder
from devlet.state.claim_entry import ClaimEntry, by_name

__all__ = ["Book", "identities", "parts"]

Devices = tuple[PreparedDevice, ...]
Results = tuple[DeviceResult, ...]

# A file may have a claim without pods. It is kept as that of a pod which does not exist, and goes with those.
_NOBODY = frozenset({""})


class Book:
    def __init__(self) -> None:
        self._entries: dict[ClaimKey, ClaimEntry] = {}
        self._pods: dict[PodUID, set[ClaimKey]] = {}
        self._confirmed: dict[ClaimKey, dict[DriverName, Results]] = {}
        self._doubtful: set[ClaimKey] = set()
        self._allocated: dict[ClaimKey, Allocated] = {}
        self.holdings = Holdings()
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
        """Whether the pod refers to the claim and all of its drivers have answered, be it before a restart."""
        entry = self._entries.get(key)
        if entry is None or pod not in (entry.pods or ()) or key in self._doubtful:
            return False
        return all(devices is not None for devices in (entry.drivers or {}).values())

    def is_confirmed(self, key: ClaimKey, driver: DriverName) -> bool:
        return driver in self._confirmed.get(key, {})

    def is_outdated(self, key: ClaimKey, results: Mapping[DriverName, Results]) -> bool:
        """Whether a driver has prepared other devices than the claim has now, be it before a restart."""
        confirmed = self._confirmed.get(key, {})
        if any(known != results.get(driver) for driver, known in confirmed.items()):
            return True
        now = {result.identity for driver in results.values() for result in driver}
        return any(each.device and each not in now for each in identities(self._entries[key]))

    def knows_allocation(self, key: ClaimKey) -> bool:
        """Whether it is known what was allocated to the claim when it was prepared."""
        return key in self._allocated

    def users(self, devices: Iterable[DeviceIdentity]) -> frozenset[PodUID]:
        """Pods that have one of these devices, or a share of it."""
        wanted = frozenset(devices)
        found: set[str] = set()
        for entry in self._entries.values():
            if any(identity in wanted for identity in identities(entry)):
                found |= entry.pods or frozenset()
        return frozenset(map(PodUID, found))

    # Changes

    def refer(self, key: ClaimKey, uid: ClaimUID, drivers: Iterable[DriverName], pod: PodUID) -> bool:
        """The pod is about to use the claim, with these drivers. Whether that is new."""
        before = self._entries.get(key)
        known: Mapping[str, Devices | None] = before.drivers or {} if before else {}
        missing = {str(name): None for name in drivers if name not in known}
        pods = before.pods or frozenset() if before else frozenset()
        if before is not None and pod in pods and not missing:
            return False
        self._put(key, ClaimEntry(uid, key.name, key.namespace, pods | {pod}, {**known, **missing}))
        return True

    def allocate(self, key: ClaimKey, results: Mapping[DriverName, Results]) -> None:
        """These devices are about to be prepared for the claim, or were before a restart."""
        self._allocated[key] = dict(results)
        self.holdings.put(key, self._entries[key], self._allocated[key])

    def unrefer(self, key: ClaimKey, pod: PodUID) -> None:
        """Without its last pod the entry is gone as well."""
        entry = self._entries[key]
        left = (entry.pods or frozenset()) - {pod}
        if left:
            self._put(key, structs.replace(entry, pods=left))
        else:
            self.remove(key)

    def put_back(self, key: ClaimKey, before: ClaimEntry | None) -> None:
        """As it was, if what was to come could not be written down."""
        if before is None:
            self.remove(key)
        else:
            self._put(key, before)

    def confirm(self, key: ClaimKey, driver: DriverName, devices: Devices, results: Results) -> None:
        """What the driver has prepared, in the place of what it answered before, for these devices of the claim."""
        entry = self._entries[key]
        self._put(key, structs.replace(entry, drivers={**(entry.drivers or {}), driver: devices}))
        self._confirmed.setdefault(key, {})[driver] = results

    def doubt(self, key: ClaimKey, driver: DriverName) -> None:
        """It is asked to unprepare the claim, and may do so without saying it: before a container starts with the
        claim it has to be asked again."""
        self._confirmed.get(key, {}).pop(driver, None)

    def forget_driver(self, key: ClaimKey, driver: DriverName) -> None:
        """It has unprepared the claim."""
        entry = self._entries[key]
        left = {name: devices for name, devices in (entry.drivers or {}).items() if name != driver}
        self._put(key, structs.replace(entry, drivers=left))
        self.doubt(key, driver)

    def remove(self, key: ClaimKey) -> None:
        entry = self._entries.pop(key)
        self._confirmed.pop(key, None)
        self._doubtful.discard(key)
        self._allocated.pop(key, None)
        self.holdings.remove(key)
        self._index(key, entry.pods or _NOBODY, frozenset())

    def _put(self, key: ClaimKey, entry: ClaimEntry) -> None:
        before = self._entries.get(key)
        self._entries[key] = entry
        self.holdings.put(key, entry, self._allocated.get(key, {}))
        self._index(key, (before.pods or _NOBODY) if before else frozenset(), entry.pods or _NOBODY)
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
        """The claims of a file, into an empty book. What a damaged one says may be wrong in every word: it is good for
        cleaning up, and a pod that uses such a claim has it corrected and prepared again."""
        for (namespace, name), entry in by_name(claims or ()).items():
            key = ClaimKey(namespace, ClaimName(name))
            self._put(key, _without_devices(entry) if damaged else entry)
            if damaged:
                self._doubtful.add(key)
        self._is_new = claims is None

    def correct(self, key: ClaimKey, uid: ClaimUID, drivers: Iterable[DriverName]) -> None:
        """If a damaged file said it: the claim is this one, with these drivers."""
        if key in self._doubtful:
            self._doubtful.remove(key)
            self._put(key, structs.replace(self._entries[key], uid=uid, drivers={str(name): None for name in drivers}))


def parts(entry: ClaimEntry) -> tuple[DriverPart, ...]:
    """By driver name."""
    drivers = entry.drivers or {}
    return tuple(DriverPart(DriverName(name), drivers[name]) for name in sorted(drivers))


def _without_devices(entry: ClaimEntry) -> ClaimEntry:
    return structs.replace(entry, drivers=dict.fromkeys(entry.drivers or {}))


def identities(entry: ClaimEntry) -> Iterator[DeviceIdentity]:
    for driver, devices in (entry.drivers or {}).items():
        for device in devices or ():
            yield DeviceIdentity(DriverName(driver), PoolName(device.pool), DeviceName(device.device))
