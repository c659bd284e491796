from typing import TYPE_CHECKING, Any

import pytest

from devlet.control.claims.claim_sync import ClaimSync
from devlet.control.claims.known_claims import KnownClaims
from devlet.control.claims.pod_outcomes import PodOutcomes
from devlet.errors import Conflict
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS, Resource

if TYPE_CHECKING:
    from tests.unit.control.claims.conftest import World

pytestmark = pytest.mark.anyio
NS = "default"
FINALIZER = "resource.kubernetes.io/delete-protection"


def sync_of(world: "World") -> ClaimSync:
    cluster: Any = world.watched
    outcomes = PodOutcomes(cluster, world.informers.pods, 10)
    return ClaimSync(cluster, world.informers, outcomes, KnownClaims(world.informers.claims))


async def needs_work(world: "World", name: str) -> bool:
    await world.settled()
    claim = world.informers.claims.get(name, NS)
    return claim is not None and sync_of(world).needs_work(claim)


def owned_by(pod: Document) -> Document:
    metadata = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}


async def test_a_claim_in_use_needs_no_work_and_one_of_unknown_pods_does(world: "World") -> None:
    await world.claim("shared")
    pod = await world.pod(gpu=":shared")
    await world.allocate("shared", pod)
    assert not await needs_work(world, "shared")
    await world.claim("strange")
    await world.allocate("strange", others=[{"resource": "pods", "name": "train", "uid": "another"}])
    assert await needs_work(world, "strange")


async def test_the_api_is_asked_only_about_an_owner_whose_name_another_pod_has(world: "World") -> None:
    pod = await world.pod(gpu=":a")
    for name, owner in (
        ("a", owned_by(pod)),
        ("b", owned_by(pod) | {"uid": "x"}),
        ("c", owned_by(pod) | {"name": "y"}),
    ):
        await world.claim(name, ownerReferences=[owner])
    assert [await needs_work(world, name) for name in "abc"] == [False, True, False]


async def test_a_claim_that_is_already_gone_is_not_an_error(world: "World") -> None:
    sync = sync_of(world)
    await sync.sync(NS, "never-was")
    await world.claim("early", finalizers=[FINALIZER])
    await world.store.delete(RESOURCE_CLAIMS, "early", NS)

    async def be_faster(verb: str, resource: Resource, args: Any) -> None:
        world.watched.before = None
        await sync_of(world).sync(NS, "early")

    await world.settled()
    world.watched.before = be_faster
    await sync.sync(NS, "early")
    assert await world.get_claim("early") is None


@pytest.mark.spec("DA-6.2b")
async def test_a_claim_that_has_changed_since_the_decision_is_not_written(world: "World") -> None:
    await world.claim("shared")
    await world.allocate("shared", others=[{"resource": "pods", "name": "gone", "uid": "u"}])
    await world.settled()

    async def change(verb: str, resource: Resource, args: Any) -> None:
        world.watched.before = None
        await world.allocate("shared", others=[{"resource": "pods", "name": "new", "uid": "v"}])

    world.watched.before = change
    with pytest.raises(Conflict):
        await sync_of(world).sync(NS, "shared")
    assert ((await world.get_claim("shared")) or {})["status"]["reservedFor"][0]["name"] == "new"


@pytest.mark.spec("DA-6.2d")
async def test_removing_an_unused_claim_takes_two_writes_or_one_without_our_finalizer(
    world: "World",
) -> None:
    pod = await world.pod(gpu=":a")
    await world.claim("a", ownerReferences=[owned_by(pod)])
    await world.allocate("a", pod)
    await world.claim("b", ownerReferences=[owned_by(pod)])
    await world.finish("train")
    await world.settled()
    for name, writes in (("a", ["delete", "patch"]), ("b", ["delete"])):
        world.watched.writes.clear()
        await sync_of(world).sync(NS, name)
        assert [verb for verb, _ in world.watched.writes] == writes
        assert await world.get_claim(name) is None
