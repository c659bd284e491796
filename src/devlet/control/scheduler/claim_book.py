"""The claims as the scheduler knows them: what the cluster says, what it wrote itself and has not heard of again, and
what it has given away but not written yet.

One owner: everything that the allocator hears about who holds what comes from here. A claim that is in flight keeps
what it was given until whoever gave it says that it was written, or will not be. Others may write to the claim, or hear
late of what they wrote, meanwhile: that ends nothing.
"""

from collections.abc import Callable, Sequence

from devlet.cluster.informer import Changed, Informer
from devlet.control.scheduler.devices import Devices
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import DeviceResult, ResourceClaim

__all__ = ["ClaimBook", "ClaimKey", "version_number"]

ClaimKey = tuple[str, str]  # namespace, name

SWEEP = 200  # changes between two looks for what was lost


class ClaimBook:
    """`freed` is called when devices have become free, `landed` when a claim is not in flight any more."""

    def __init__(
        self,
        claims: Informer[ResourceClaim],
        devices: Devices,
        freed: Callable[[], None] = lambda: None,
        landed: Callable[[ClaimKey], None] = lambda _: None,
    ) -> None:
        self._claims = claims
        self._devices = devices
        self._freed = freed
        self._landed = landed
        self._written: dict[ClaimKey, ResourceClaim] = {}
        self._in_flight: dict[ClaimKey, Sequence[DeviceResult]] = {}
        self._held: dict[ClaimKey, Sequence[DeviceResult]] = {}
        self._changes = 0
        claims.on_change(self._changed)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        return self._written.get((namespace, name)) or self._claims.get(name, namespace)

    def is_in_flight(self, key: ClaimKey) -> bool:
        return key in self._in_flight

    def reserve(self, key: ClaimKey, results: Sequence[DeviceResult]) -> None:
        """These devices are given to the claim; it is not written yet."""
        self._in_flight[key] = results
        self._hold(key, results)

    def drop(self, key: ClaimKey, results: Sequence[DeviceResult]) -> None:
        """These are not in flight any more, and the claim has what it says; what somebody else gave to it since, is."""
        if self._in_flight.get(key) is results:
            del self._in_flight[key]
            self._settle(key)
            self._landed(key)

    def read(self, document: Document) -> ResourceClaim:
        """A claim as the cluster has it, or had it a while ago, maybe before the informer knows."""
        claim = view(ResourceClaim, document)
        key = (claim.metadata.namespace, claim.metadata.name)
        known = self._written.get(key)
        newest = max(version_number(self._claims.version), _version(known) if known else 0)
        if newest < _version(claim):  # or else it may have been written or deleted since
            self._written[key] = claim
        self._settle(key)
        return claim

    def _changed(self, change: Changed[ResourceClaim]) -> None:
        written = self._written.get(change.key)
        if written is not None and _is_older(written, change):
            del self._written[change.key]
        self._settle(change.key)
        self._changes += 1
        if self._changes % SWEEP == 0:
            self._sweep()

    def _sweep(self) -> None:
        """What was written and deleted while the informer had lost its connection was never there to it."""
        now = version_number(self._claims.version)
        gone = [key for key, written in self._written.items() if _version(written) <= now]
        for key in [key for key in gone if self._claims.get(key[1], key[0]) is None]:
            del self._written[key]
            self._settle(key)

    def _settle(self, key: ClaimKey) -> None:
        if key not in self._in_flight:
            claim = self.get(*key)
            self._hold(key, claim.results if claim else ())

    def _hold(self, key: ClaimKey, results: Sequence[DeviceResult]) -> None:
        before = self._held.get(key, ())
        if before == results:
            return
        if results:
            self._held[key] = results
            self._devices.hold(key, results)
        else:
            del self._held[key]
            self._devices.release(key)
        if before:
            self._freed()


def _is_older(written: ResourceClaim, change: Changed[ResourceClaim]) -> bool:
    """Whether the news are about what was written, or about what came after it. A claim of the same name that was
    deleted may have been another one."""
    if change.new is not None:
        return _version(change.new) >= _version(written)
    return change.old is not None and change.old.uid == written.uid


def _version(claim: ResourceClaim) -> int:
    return version_number(claim.metadata.resource_version)


def version_number(version: str) -> int:
    """Return a resourceVersion as a number, so that two of one kind can be compared."""
    return int(version or 0)
