"""What devices there are and who holds them, as the allocator sees it; and the one door to the allocator.

Most searches are short and done on the spot. A long one goes on in a thread (`apart`): what changes meanwhile is kept
and told to the allocator afterwards, because it bears one thread at a time.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import anyio

from devlet.alloc import ALL_FEATURES, Allocator, Features, Inventory, Rules
from devlet.control.scheduler.settings import Settings
from devlet.control.search_time import SearchTime
from devlet.errors import InvalidInput
from devlet.kit.facts import facts
from devlet.objects.claims.overlaps import Ledger
from devlet.objects.types.claim import DeviceResult
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.slice import ResourceSlice

__all__ = ["Devices"]

log = logging.getLogger(__name__)

T = TypeVar("T")
ClaimKey = tuple[str, str]


class Devices:
    """`ledger` has the same devices and holders, and is updated at once, even while a thread uses the allocator."""

    def __init__(self, features: Features = ALL_FEATURES, rules: Rules = Rules()) -> None:
        self.allocator = Allocator(Inventory(), features, rules)
        self.ledger = Ledger()
        self._later: list[Callable[[], None]] | None = None
        self._alone = anyio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether a thread has the allocator: then wait for `apart`."""
        return self._later is not None

    async def searched(self, search: Callable[[SearchTime], T], settings: Settings) -> T:
        """What a search finds: on the spot, as long as it does not take long."""
        await self.idle()
        quick = SearchTime(settings.quick, settings.quick)
        if (found := search(quick)) or not quick.exceeded:
            return found
        return await self.apart(partial(search, SearchTime(settings.filter_timeout, settings.attempt_timeout)))

    async def apart(self, work: Callable[[], T]) -> T:
        """Do it in a thread, after others who wanted that, too. Even if it is cancelled it is waited for."""
        async with self._alone:
            self._later = []
            try:
                return await anyio.to_thread.run_sync(work)
            finally:
                changes, self._later = self._later, None
                for change in changes:
                    self._caught_up(change)

    def _caught_up(self, change: Callable[[], None]) -> None:
        """One that cannot be made must not keep the others from being made."""
        try:
            change()
        except Exception as e:
            log.error("change not seen", exc_info=e)

    async def idle(self) -> None:
        """Until no thread has the allocator."""
        while self.is_busy:
            async with self._alone:
                pass

    @contextmanager
    def without(self, held: Mapping[ClaimKey, Sequence[DeviceResult]]) -> Iterator[None]:
        """As if the claims did not have what they have; for a search, by whoever has the allocator."""
        for claim in held:
            self.allocator.inventory.release(*claim)
        try:
            yield
        finally:
            for claim, results in held.items():
                self._hold(claim, results)

    # What changes

    def see_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if new is not None:
            self.ledger.put_slice(new)
            self._do(lambda: self._put_slice(new))
        elif old is not None:
            self.ledger.remove_slice(old.metadata.name)
            self._do(lambda: self.allocator.inventory.remove_slice(old.metadata.name))

    def see_class(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        inventory = self.allocator.inventory
        if new is not None:
            self._do(lambda: inventory.put_class(new))
        elif old is not None:
            self._do(lambda: inventory.remove_class(old.name))

    def hold(self, claim: ClaimKey, results: Sequence[DeviceResult]) -> None:
        self.ledger.hold(claim, results)
        self._do(lambda: self._hold(claim, results))

    def release(self, claim: ClaimKey) -> None:
        self.ledger.release(claim)
        self._do(lambda: self.allocator.inventory.release(*claim))

    def when_idle(self, change: Callable[[], None]) -> None:
        """Whatever else a search looks at changes by way of this, too: at once, or when the thread is done."""
        self._do(change)

    def _do(self, change: Callable[[], None]) -> None:
        if self._later is not None:
            self._later.append(change)
        else:
            change()

    def _put_slice(self, slice: ResourceSlice) -> None:
        try:
            self.allocator.inventory.put_slice(slice)
        except InvalidInput as e:
            self.allocator.inventory.remove_slice(slice.metadata.name)
            log.warning("slice left out", extra=facts(slice=slice.metadata.name, driver=slice.spec.driver, err=e))

    def _hold(self, claim: ClaimKey, results: Sequence[DeviceResult]) -> None:
        """Amounts that cannot be read do not make the device free: it counts as taken as a whole."""
        inventory = self.allocator.inventory
        try:
            inventory.hold_devices(*claim, results)
        except InvalidInput as e:
            log.warning("claim with unreadable amounts", extra=facts(claim="/".join(claim), err=e))
            whole = [DeviceResult(driver=each.driver, pool=each.pool, device=each.device) for each in results]
            inventory.hold_devices(*claim, whole)
