"""Claims that have devices which stand in the way: allocated for a node where their pod cannot run, or never attached.

Nobody but the pod uses them, so their devices can be taken back and others looked for. Of several such claims only
those are deallocated that make a difference. If nothing helps, the pod keeps nothing that was reserved for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from msgspec.structs import replace

from devlet.control.claim_writes import ClaimWriter
from devlet.control.scheduler import claim_checks
from devlet.control.scheduler.claim_book import ClaimBook
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.placing import Placer
from devlet.control.scheduler.settings import Settings
from devlet.control.scheduler.subject import Subject
from devlet.control.search_time import SearchTime
from devlet.kit.clock import Clock
from devlet.objects.claims.overlaps import Overlap
from devlet.objects.types.claim import ResourceClaim, ResourceClaimStatus

__all__ = ["Unblocker"]

Claims = Sequence[ResourceClaim]


@dataclass(frozen=True, slots=True)
class Unblocker:
    book: ClaimBook
    devices: Devices
    placer: Placer
    writer: ClaimWriter
    clock: Clock
    settings: Settings

    async def drop_failed(self, subject: Subject) -> bool:
        """Take back devices that could not be attached. Whether there were any."""
        failed = [claim for claim in _free_to_drop(subject) if self._has_failed(claim)]
        await self._deallocate(subject, failed)
        return bool(failed)

    def in_vain(self, subject: Subject) -> ResourceClaim | None:
        """A claim whose devices could not be attached, and cannot be taken back: others use it."""
        droppable = _free_to_drop(subject)
        return next((each for each in subject.allocated if each not in droppable and self._has_failed(each)), None)

    async def drop_overlapping(self, subject: Subject) -> str:
        """Take back devices that another claim has as well, if only this pod uses them.

        Return why the pod cannot use its claims; empty if there are no overlaps, or if the pod has its node already."""
        claims = () if subject.node else subject.allocated
        found = {claim.name: overlaps[0] for claim in claims if (overlaps := self._overlaps(claim))}
        droppable = [claim for claim in _free_to_drop(subject) if claim.name in found]
        await self._deallocate(subject, droppable)
        await self._give_back(
            subject, [each for each in subject.reserved if each.name in found and each not in droppable]
        )
        return next((overlap.text for overlap in found.values()), "")

    def _overlaps(self, claim: ResourceClaim) -> Sequence[Overlap]:
        return self.devices.ledger.of((claim.metadata.namespace, claim.metadata.name))

    async def drop_lost(self, subject: Subject, claims: Claims) -> bool:
        """Deallocate claims that nothing can prepare any more. Return True if there were any."""
        await self._deallocate(subject, claims)
        return bool(claims)

    async def drop(self, subject: Subject, claim: ResourceClaim) -> bool:
        """Take back devices that no pod may begin to use any more. Whether that was possible."""
        droppable = [each for each in _free_to_drop(subject) if each is claim]
        await self._deallocate(subject, droppable)
        return bool(droppable)

    async def unblock(self, subject: Subject) -> bool:
        """Take back devices if the pod would have a place then. Whether that is so."""
        for freed in _choices(_free_to_drop(subject)):
            if await self.devices.searched(partial(self._would_help, subject, freed), self.settings):
                await self._deallocate(subject, freed)
                return True
        return False

    async def step_back(self, subject: Subject) -> bool:
        """Somebody who died had reserved claims for the pod, and it has no place with them: let go of them. Others may
        be in the same position, and nobody gets the devices before all of them have let go. Whether there were any."""
        left = [] if subject.node else subject.reserved
        await self._give_back(subject, left)
        return bool(left)

    def _has_failed(self, claim: ResourceClaim) -> bool:
        if not claim_checks.has_conditions(claim):
            return False
        expired = claim_checks.is_expired(claim, self.settings.binding_timeout, self.clock.now())
        return expired or claim_checks.binding(claim).state == "failed"

    def _would_help(self, subject: Subject, freed: Claims, time: SearchTime) -> bool:
        names = {claim.name for claim in freed}
        claims = tuple(_without_devices(claim) if claim.name in names else claim for claim in subject.claims)
        with self.devices.without({(claim.metadata.namespace, claim.metadata.name): claim.results for claim in freed}):
            return self.placer.place(subject.with_claims(claims), time) is not None

    async def _give_back(self, subject: Subject, claims: Claims) -> None:
        for claim in claims:
            if (answer := await self.writer.give_back(claim, subject.pod, deallocate=True)) is not None:
                self.book.read(answer)

    async def _deallocate(self, subject: Subject, claims: Claims) -> None:
        for claim in claims:
            if (answer := await self.writer.deallocate(claim, subject.pod)) is not None:
                self.book.read(answer)


def _free_to_drop(subject: Subject) -> list[ResourceClaim]:
    return [claim for claim in (subject.allocated if not subject.node else ()) if subject.is_only_user(claim)]


def _choices(claims: Claims) -> Iterator[Claims]:
    """One of them, or all."""
    singles = ([claim] for claim in claims)
    return chain(singles, [claims] if len(claims) > 1 else [])


def _without_devices(claim: ResourceClaim) -> ResourceClaim:
    return replace(claim, status=ResourceClaimStatus())
