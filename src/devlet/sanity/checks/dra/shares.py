"""Devices that several claims may share (`allowMultipleAllocations`)."""

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.claim_maker import Want
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.KEP_5075)


@checks.add(
    "DRA-PREP-20",
    "Two claims can share a shareable device",
    rule="the scheduler allocates a device with allowMultipleAllocations to several claims, within its capacity",
    how="create two ResourceClaims that are allocated shares of one device and call NodePrepareResources for both",
)
async def two_claims(rig: DraRig) -> Outcome:
    [offer] = rig.maker.take(1, shared=True)
    half = Want(offers=[offer], claims=2)
    async with rig.claim(half) as first, rig.claim(half) as second:
        ids = ids_of(await rig.client.prepared(first.ref))
        try:
            ids += ids_of(await rig.client.prepared(second.ref))
        except PluginError as e:
            return Failed(f"{first.name} has a share of {offer.name}; preparing another share failed: {e.message}")
        if missing := rig.cdi.missing(ids):
            return Failed(f"two shares of {offer.name} were prepared, but CDI device {missing} does not exist")
    return Passed()
