"""The records that the claim manager hands out: claims of this node, claims of a container, and pods that wait."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice

__all__ = ["ClaimKey", "ClaimRecord", "ClaimState", "ContainerClaim", "Contested", "DriverPart", "PodWait"]


class ClaimKey(Struct, frozen=True, order=True, gc=False):
    """The key by which pods name a claim. A claim that is created later with the same name has another UID."""

    namespace: str
    name: ClaimName

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ClaimState(StrEnum):
    PREPARING = "Preparing"
    PREPARED = "Prepared"
    FAILED = "Failed"  # the last attempt to prepare or unprepare it; it is retried
    UNPREPARING = "Unpreparing"


class DriverPart(Struct, frozen=True):
    """What one driver has prepared for a claim. `devices` is None until it has answered."""

    driver: DriverName
    devices: tuple[PreparedDevice, ...] | None


class ClaimRecord(Struct, frozen=True):
    """A claim in the checkpoint. `since` is when its state began, None if that was before a restart."""

    key: ClaimKey
    uid: ClaimUID
    state: ClaimState
    drivers: tuple[DriverPart, ...]
    pods: tuple[PodUID, ...]
    since: datetime | None = None
    message: str = ""


class ContainerClaim(Struct, frozen=True):
    """What a container has of one claim. `pod_claim` is the entry's name in the pod, or empty for the claim behind its
    extended resources. `request` is empty if the container names none and so has all of them."""

    pod_claim: str
    request: str
    key: ClaimKey
    drivers: tuple[DriverPart, ...]  # only with the devices of this request


class Contested(Struct, frozen=True, order=True):
    """A device, as DRIVER/POOL/DEVICE, that is prepared for the claim `holder` while `claim` waits for it."""

    device: str
    holder: str
    claim: str


class PodWait(Struct, frozen=True):
    """A pod that cannot start because its claims are not prepared. `drivers` are the drivers it waits for, `contested`
    the devices of its claims that are prepared for other claims."""

    pod: PodUID
    claims: tuple[ClaimKey, ...]
    since: datetime
    message: str
    drivers: tuple[DriverName, ...] = ()
    contested: tuple[Contested, ...] = ()

    @property
    def holders(self) -> frozenset[str]:
        """Return the claims for which its devices are prepared, as NAMESPACE/NAME."""
        return frozenset(each.holder for each in self.contested)
