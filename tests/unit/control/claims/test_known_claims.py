from typing import TYPE_CHECKING

import pytest

from devlet.cluster.informer import Changed
from devlet.control.claims.known_claims import KnownClaims
from devlet.control.informers import Informers
from devlet.objects.claims.from_template import claim_from_template
from devlet.objects.documents import view
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

if TYPE_CHECKING:
    from tests.unit.control.claims.conftest import World

pytestmark = pytest.mark.anyio
NS = "default"


async def made(world: "World") -> tuple[Pod, ResourceClaim]:
    pod = view(Pod, await world.pod(gpu="one-gpu"))
    document = claim_from_template(await world.template(), pod, "gpu")
    return pod, view(ResourceClaim, await world.store.create(RESOURCE_CLAIMS, document, NS))


@pytest.mark.spec("DA-6.1c")
async def test_a_created_claim_is_known_before_the_copy_has_it(world: "World") -> None:
    pod, claim = await made(world)
    copy = Informers(world.store).claims  # does not run, so its copy is outdated
    known = KnownClaims(copy)
    copy.version = "1"
    assert known.made_for(pod, "gpu") is None
    known.made(claim)
    assert known.get(claim.name, NS) == claim and known.made_for(pod, "gpu") == claim
    assert known.made_for(pod, "nic") is None


@pytest.mark.spec("DA-6.1c")
async def test_the_copy_counts_once_it_has_reached_the_version(world: "World") -> None:
    pod, claim = await made(world)
    copy = Informers(world.store).claims  # does not run, so its copy is outdated
    known = KnownClaims(copy)
    copy.version = "1"
    known.made(claim)
    copy.version = claim.metadata.resource_version
    assert known.get(claim.name, NS) is None and known.made_for(pod, "gpu") is None
    known.made(claim)
    assert known.get(claim.name, NS) is None


async def test_a_created_claim_is_forgotten_once_it_was_observed(world: "World") -> None:
    _, claim = await made(world)
    copy = Informers(world.store).claims
    known = KnownClaims(copy)
    copy.version = ""
    known.made(claim)
    known.delivered(Changed((NS, claim.name), claim, None))
    assert known.get(claim.name, NS) is None and not known._made_for


async def test_claims_of_the_copy_are_found_unless_they_are_being_deleted(world: "World") -> None:
    pod, claim = await made(world)
    await world.settled()
    known = KnownClaims(world.informers.claims)
    assert known.made_for(pod, "gpu") == claim == known.get(claim.name, NS)
    await world.store.delete(RESOURCE_CLAIMS, claim.name, NS)
    await world.settled()
    assert known.made_for(pod, "gpu") is None and known.get(claim.name, NS) is not None
