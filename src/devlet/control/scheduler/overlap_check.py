"""Check whether another scheduler allocated the same devices, after our own write and before the pod is bound.

    write the claim ─▶ wait until the informer has our write ─▶ compare ─▶ bind
                                                                   └─ overlap: give the claim back, try again

Events of one kind arrive in the order of their versions. So when the informer has seen our own write, it has also seen
every allocation that was written before it. Of two schedulers that check this, at least one notices the overlap. The
check needs no request.
"""

from collections.abc import Iterable, Sequence

import anyio

from devlet.control.scheduler.claim_book import ClaimBook, version_number
from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.errors import Overlapping, Unavailable
from devlet.objects.claims.overlaps import Ledger
from devlet.objects.identifiers import ObjectKey
from devlet.objects.types.claim import ResourceClaim

__all__ = ["OverlapCheck"]


class OverlapCheck:
    """`patience` is the number of seconds that the informer may take to see one of our writes."""

    def __init__(self, book: ClaimBook, ledger: Ledger, metrics: SchedulerMetrics, patience: float) -> None:
        self._book = book
        self._ledger = ledger
        self._metrics = metrics
        self._patience = patience

    async def seen(self, claims: Sequence[ResourceClaim]) -> None:
        """Wait until the informer has these versions of the claims or newer ones. Raise Unavailable after that time."""
        if all(map(self._is_seen, claims)):
            return
        with anyio.move_on_after(self._patience):
            for claim in claims:
                while not self._is_seen(claim):
                    key = (claim.metadata.namespace, claim.metadata.name)
                    await self._book.next_change(key).wait()
            return
        names = ", ".join(claim.name for claim in claims if not self._is_seen(claim))
        raise Unavailable(f"the allocation of claim {names} did not come back in a watch within {self._patience:g} s")

    def compare(self, claims: Iterable[ObjectKey]) -> None:
        """Raise Overlapping if another claim has a device of one of these."""
        for key in claims:
            for overlap in self._ledger.of(key):
                self._metrics.overlapped()
                if overlap.lacking:
                    raise Overlapping(f"{overlap.text}; trying again")
                raise Overlapping(
                    f"{overlap.what} was allocated to {overlap.others(key)} by another scheduler; trying again"
                )

    def _is_seen(self, claim: ResourceClaim) -> bool:
        return self._book.version >= version_number(claim.metadata.resource_version)
