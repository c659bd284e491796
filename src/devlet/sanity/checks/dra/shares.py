"""Devices that several claims may have at the same time (`allowMultipleAllocations`)."""

from fractions import Fraction

from devlet.errors import PluginError
from devlet.objects.documents import Document
from devlet.objects.quantity import Quantity
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.claim_maker import Offer, Want
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig]()


@checks.add(
    "DRA-PREP-20",
    "Two claims can share a device that may be shared",
    rule="the scheduler gives a device with allowMultipleAllocations to several claims, within its capacity: KEP 5075",
    how="make two ResourceClaims that are allocated shares of one device, and call NodePrepareResources for both",
)
async def two_claims(rig: DraRig) -> Outcome:
    [offer] = rig.maker.take(1, shared=True)
    half = Want(offers=[small(offer)])
    async with rig.claim(half) as first, rig.claim(half) as second:
        ids = ids_of(await rig.client.prepared(first.ref))
        try:
            ids += ids_of(await rig.client.prepared(second.ref))
        except PluginError as e:
            return Failed(f"{first.name} has a share of {offer.name}; for another one {e.message}")
        if missing := rig.cdi.missing(ids):
            return Failed(f"two claims have shares of {offer.name}, and there is no CDI device {missing}")
    return Passed()


def small(offer: Offer) -> Offer:
    """The device with so little of its capacities that two claims can have it. CannotTell if that cannot be."""
    parts: dict[str, Document] = {}
    for name, capacity in offer.device.get("capacity", {}).items():
        part = _part(capacity)
        if part * 2 > Quantity.parse(capacity["value"]):
            raise CannotTell(f"{offer.name} has {name} {capacity['value']}, and a share takes at least {part}")
        parts[name] = {"value": str(part)}
    return Offer(offer.pool, {**offer.device, "capacity": parts})


def _part(capacity: Document) -> Quantity:
    policy = capacity.get("requestPolicy") or {}
    allowed = [(policy.get("validRange") or {}).get("min"), *(policy.get("validValues") or []), policy.get("default")]
    parts = (Quantity.parse(each) for each in allowed if each is not None)
    return next((part for part in parts if part.sign > 0), Quantity.parse(capacity["value"]) * Fraction(1, 2))
