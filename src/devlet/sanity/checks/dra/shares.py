"""Devices that several claims may have at the same time (`allowMultipleAllocations`)."""

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.claim_maker import Want
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.KEP_5075)


@checks.add(
    "DRA-PREP-20",
    "Two claims can share a device that may be shared",
    rule="the scheduler gives a device with allowMultipleAllocations to several claims, within its capacity",
    how="make two ResourceClaims that are allocated shares of one device, and call NodePrepareResources for both",
)
async def two_claims(rig: DraRig) -> Outcome:
    [offer] = rig.maker.take(1, shared=True)
    half = Want(offers=[offer], claims=2)
    async with rig.claim(half) as first, rig.claim(half) as second:
        ids = ids_of(await rig.client.prepared(first.ref))
        try:
            ids += ids_of(await rig.client.prepared(second.ref))
        except PluginError as e:
            return Failed(f"{first.name} has a share of {offer.name}; for another one {e.message}")
        if missing := rig.cdi.missing(ids):
            return Failed(f"two claims have shares of {offer.name}, and there is no CDI device {missing}")
    return Passed()
