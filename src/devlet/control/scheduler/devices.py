"""The devices and the claims that hold them, as the allocator sees them, and the only access to the allocator.

Most searches are short and run in the event loop. A long one runs in a thread (`in_thread`). The allocator is not
thread-safe, so changes that arrive in the meantime are applied when the thread is done.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import anyio

from devlet.alloc import ALL_FEATURES, Allocator, Features, Inventory, Rules
from devlet.control.scheduler.settings import SearchLimits
from devlet.control.search_time import SearchTime
from devlet.errors import InvalidInput
from devlet.kit.facts import facts
from devlet.objects.claims.overlaps import Ledger
from devlet.objects.identifiers import ObjectKey
from devlet.objects.types.claim import DeviceResult
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.slice import ResourceSlice

__all__ = ["Devices"]

log = logging.getLogger(__name__)

T = TypeVar("T")


class Devices:
    """`ledger` has the same devices and claims, and is updated at once, even while a thread uses the allocator."""

    def __init__(self, features: Features = ALL_FEATURES, rules: Rules = Rules()) -> None:
        self.allocator = Allocator(Inventory(), features, rules)
        self.ledger = Ledger()
        self._postponed: list[Callable[[], None]] | None = None  # None while no thread uses the allocator
        self._thread = anyio.Lock()

    @property
    def is_busy(self) -> bool:
        """Return True while a thread uses the allocator."""
        return self._postponed is not None

    async def searched(self, search: Callable[[SearchTime], T], limits: SearchLimits) -> T:
        """Return what a search finds. Repeat it in a thread, with more time, if it takes long."""
        await self.idle()
        quick = SearchTime(limits.quick, limits.quick)
        if (found := search(quick)) or not quick.exceeded:
            return found
        return await self.in_thread(partial(search, SearchTime(limits.node, limits.pod)))

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do work in a thread, one after the other. A thread cannot be cancelled: the caller waits for its end."""
        async with self._thread:
            self._postponed = []
            try:
                return await anyio.to_thread.run_sync(work)
            finally:
                changes, self._postponed = self._postponed, None
                for change in changes:
                    self._apply(change)

    def _apply(self, change: Callable[[], None]) -> None:
        """Apply a postponed change. If that fails, the others are still applied."""
        try:
            change()
        except Exception as e:
            log.error("postponed change failed", exc_info=e)

    async def idle(self) -> None:
        """Wait until no thread uses the allocator."""
        while self.is_busy:
            async with self._thread:
                pass

    @contextmanager
    def without(self, held: Mapping[ObjectKey, Sequence[DeviceResult]]) -> Iterator[None]:
        """Free the devices of claims for the duration of a search, and hold them again afterwards."""
        for claim in held:
            self.allocator.inventory.release(*claim)
        try:
            yield
        finally:
            for claim, results in held.items():
                self._hold(claim, results)

    # Changes

    def see_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if new is not None:
            self.ledger.put_slice(new)
            self.when_idle(lambda: self._put_slice(new))
        elif old is not None:
            self.ledger.remove_slice(old.metadata.name)
            self.when_idle(lambda: self.allocator.inventory.remove_slice(old.metadata.name))

    def see_class(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        inventory = self.allocator.inventory
        if new is not None:
            self.when_idle(lambda: inventory.put_class(new))
        elif old is not None:
            self.when_idle(lambda: inventory.remove_class(old.name))

    def hold(self, claim: ObjectKey, results: Sequence[DeviceResult]) -> None:
        self.ledger.hold(claim, results)
        self.when_idle(lambda: self._hold(claim, results))

    def release(self, claim: ObjectKey) -> None:
        self.ledger.release(claim)
        self.when_idle(lambda: self.allocator.inventory.release(*claim))

    def when_idle(self, change: Callable[[], None]) -> None:
        """Apply a change of anything that searches read: at once, or when the thread is done."""
        if self._postponed is not None:
            self._postponed.append(change)
        else:
            change()

    def _put_slice(self, slice: ResourceSlice) -> None:
        try:
            self.allocator.inventory.put_slice(slice)
        except InvalidInput as e:
            self.allocator.inventory.remove_slice(slice.metadata.name)
            log.warning("slice ignored", extra=facts(slice=slice.metadata.name, driver=slice.spec.driver, err=e))

    def _hold(self, claim: ObjectKey, results: Sequence[DeviceResult]) -> None:
        """Hold devices for a claim. If the consumed capacity cannot be read, hold each device as a whole."""
        inventory = self.allocator.inventory
        try:
            inventory.hold_devices(*claim, results)
        except InvalidInput as e:
            log.warning("consumed capacity of claim not readable", extra=facts(claim="/".join(claim), err=e))
            whole = [DeviceResult(driver=each.driver, pool=each.pool, device=each.device) for each in results]
            inventory.hold_devices(*claim, whole)
