"""The claims as the scheduler knows them: the informer's copy, our own writes that the informer has not seen yet, and
allocations that were decided and are not written yet.

The claim book alone tells the allocator which claim holds which devices. A claim in flight keeps the devices of its
decision until the binder that made it drops it, written or not. Other writes to the claim in the meantime do not end
that.
"""

from collections.abc import Callable, Sequence

import anyio

from devlet.cluster.informer import Changed, Informer
from devlet.control.scheduler.devices import Devices
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import ObjectKey
from devlet.objects.types.claim import DeviceResult, ResourceClaim

__all__ = ["ClaimBook", "version_number"]

SWEEP = 200  # changes between two searches for written claims that the informer will never see


class ClaimBook:
    """`freed` is called when devices became free, `landed` when a claim is no longer in flight."""

    def __init__(
        self,
        claims: Informer[ResourceClaim],
        devices: Devices,
        freed: Callable[[], None] = lambda: None,
        landed: Callable[[ObjectKey], None] = lambda _: None,
    ) -> None:
        self._claims = claims
        self._devices = devices
        self._freed = freed
        self._landed = landed
        self._written: dict[ObjectKey, ResourceClaim] = {}
        self._in_flight: dict[ObjectKey, Sequence[DeviceResult]] = {}
        self._held: dict[ObjectKey, Sequence[DeviceResult]] = {}
        self._next_changes: dict[ObjectKey, anyio.Event] = {}
        self._changes = 0
        claims.on_change(self._changed)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        return self._written.get((namespace, name)) or self._claims.get(name, namespace)

    @property
    def version(self) -> int:
        """The version up to which the informer has seen claims."""
        return version_number(self._claims.version)

    def next_change(self, key: ObjectKey) -> anyio.Event:
        """Return an event that is set when the informer sees the next change of the claim."""
        return self._next_changes.setdefault(key, anyio.Event())

    def is_in_flight(self, key: ObjectKey) -> bool:
        return key in self._in_flight

    def reserve(self, key: ObjectKey, results: Sequence[DeviceResult]) -> None:
        """Count the devices of a decision as the claim's before it is written."""
        self._in_flight[key] = results
        self._hold(key, results)

    def drop(self, key: ObjectKey, results: Sequence[DeviceResult]) -> None:
        """End a decision: from now on the claim holds what its object says. A newer decision for it is kept."""
        if self._in_flight.get(key) is results:
            del self._in_flight[key]
            self._settle(key)
            self._landed(key)

    def read(self, document: Document) -> ResourceClaim:
        """Decode a claim that the cluster returned. It counts until the informer has seen it or a newer version."""
        claim = view(ResourceClaim, document)
        key = (claim.metadata.namespace, claim.metadata.name)
        known = self._written.get(key)
        newest = max(self.version, _version(known) if known else 0)
        if newest < _version(claim):  # otherwise the claim may have been changed or deleted since
            self._written[key] = claim
        self._settle(key)
        return claim

    def _changed(self, change: Changed[ResourceClaim]) -> None:
        written = self._written.get(change.key)
        if written is not None and _is_older(written, change):
            del self._written[change.key]
        self._settle(change.key)
        if (event := self._next_changes.pop(change.key, None)) is not None:
            event.set()
        self._changes += 1
        if self._changes % SWEEP == 0:
            self._sweep()

    def _sweep(self) -> None:
        """Forget claims that were written and deleted while the informer was disconnected: it will never see them."""
        now = self.version
        gone = [key for key, written in self._written.items() if _version(written) <= now]
        for key in [key for key in gone if self._claims.get(key[1], key[0]) is None]:
            del self._written[key]
            self._settle(key)

    def _settle(self, key: ObjectKey) -> None:
        if key not in self._in_flight:
            claim = self.get(*key)
            self._hold(key, claim.results if claim else ())

    def _hold(self, key: ObjectKey, results: Sequence[DeviceResult]) -> None:
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
    """Return True if the change is the written version or a later one. A deleted claim of the same name may have been
    a different one."""
    if change.new is not None:
        return _version(change.new) >= _version(written)
    return change.old is not None and change.old.uid == written.uid


def _version(claim: ResourceClaim) -> int:
    return version_number(claim.metadata.resource_version)


def version_number(version: str) -> int:
    """Return a resourceVersion as a number, so that two of one kind can be compared."""
    return int(version or 0)
