"""DRA drivers that unprepare claims incorrectly. See `faulty_dra_driver`."""

from collections.abc import Sequence
from typing import Any

from devlet.cluster.client import Cluster
from devlet.errors import InUse, NotFound, Unavailable
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.sdk.server import Methods
from devlet.sdk.values import Claim, ClaimRef, Prepared
from tests.support.mutants.sound_dra_driver import UNPREPARE, SoundDraDriver

__all__ = ["BUGS"]

Driver = SoundDraDriver


class NeverEnds(Driver):
    """Never unprepare a claim."""

    async def unprepare(self, claim: ClaimRef) -> None:
        raise Unavailable("the light is still on")


class EndsOnce(Driver):
    """Fail to unprepare a claim that was unprepared before."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ended: set[str] = set()

    async def unprepare(self, claim: ClaimRef) -> None:
        if claim.uid in self.ended:
            raise NotFound(f"claim {claim.name} is not prepared any more")
        self.ended.add(claim.uid)
        await super().unprepare(claim)


class KnowsItsClaims(Driver):
    """Fail to unprepare a claim that was never prepared."""

    async def unprepare(self, claim: ClaimRef) -> None:
        if claim.uid not in await self.log.entries():
            raise NotFound(f"claim {claim.name} is not prepared")
        await super().unprepare(claim)


class AsksTheApi(Driver):
    """Fail to unprepare a claim that is gone from the API."""

    async def unprepare(self, claim: ClaimRef) -> None:
        await self.cluster.get(RESOURCE_CLAIMS, claim.name, claim.namespace)
        await super().unprepare(claim)


class Buries(EndsOnce):
    """Never prepare a claim again after it was unprepared."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        if claim.uid in self.ended:
            raise InUse(f"claim {claim.ref.name} has been used")
        return await super().prepare(claim)

    async def unprepare(self, claim: ClaimRef) -> None:
        self.ended.add(claim.uid)
        await Driver.unprepare(self, claim)


class GivesNothingBack(Driver):
    """Report success without unpreparing anything."""

    async def unprepare(self, claim: ClaimRef) -> None: ...


class OldServiceByHalf(Driver):
    """Implement only NodePrepareResources in v1beta1."""

    def dra(self, cluster: Cluster) -> list[Methods]:
        def is_there(path: str) -> bool:
            return not ("v1beta1" in path and path.endswith(f"/{UNPREPARE}"))

        return [
            Methods({path: unary for path, unary in each.unary.items() if is_there(path)}, each.streams)
            for each in super().dra(cluster)
        ]


class EndsAll(Driver):
    """Unprepare all claims together with one."""

    async def unprepare(self, claim: ClaimRef) -> None:
        await super().unprepare(claim)
        for uid in self.cdi_files.leftovers():
            self.cdi_files.remove(uid)


BUGS: dict[str, type[Driver]] = {
    "DRA-UNPREP-1": NeverEnds,
    "DRA-UNPREP-3": EndsOnce,
    "DRA-UNPREP-4": KnowsItsClaims,
    "DRA-UNPREP-5": AsksTheApi,
    "DRA-UNPREP-6": Buries,
    "DRA-UNPREP-7": GivesNothingBack,
    "DRA-UNPREP-8": EndsAll,
    "DRA-UNPREP-9": OldServiceByHalf,
}
