from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import DeleteOptions
from devlet.control.claim_writes import ClaimWriter
from devlet.control.claims.known_claims import KnownClaims
from devlet.control.claims.metrics import ClaimMetrics
from devlet.control.claims.pod_sync import PodSync
from devlet.control.informers import Informers
from devlet.errors import DevletError
from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.objects.claims.from_template import claim_from_template
from devlet.objects.documents import view
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS, Resource
from devlet.objects.types.pod import Pod

if TYPE_CHECKING:
    from tests.unit.control.claims.conftest import World

pytestmark = pytest.mark.anyio
NS = "default"


def sync_of(world: "World", informers: Informers | None = None) -> PodSync:
    informers = informers or world.informers
    cluster: Any = world.watched
    metrics = ClaimMetrics(Registry(), informers.claims)
    writer = ClaimWriter(cluster, SystemClock())
    return PodSync(cluster, writer, informers, KnownClaims(informers.claims), world.recorder, metrics)


async def test_a_pod_that_is_already_gone_is_not_an_error(world: "World") -> None:
    await sync_of(world).sync(NS, "never-was")
    assert world.watched.writes == []


async def test_only_pods_with_missing_claims_need_work(world: "World") -> None:
    await world.claim("shared")
    pods = [
        view(Pod, await world.pod("without")),
        view(Pod, await world.pod("named", gpu=":shared")),
        view(Pod, await world.pod("from-template", gpu="one-gpu")),
    ]
    assert [sync_of(world).needs_work(pod) for pod in pods] == [False, False, True]


@pytest.mark.spec("DA-6.1b")
async def test_a_recorded_claim_that_only_our_copy_lacks_is_not_created_again(world: "World") -> None:
    template = await world.template()
    informers = Informers(world.store)
    async with informers.running():
        await world.settled()
    # From here on, only the copy of the pods is updated, not the one of the claims.
    informers.pods = world.informers.pods
    pod = view(Pod, await world.pod(gpu="one-gpu"))
    made = await world.store.create(RESOURCE_CLAIMS, claim_from_template(template, pod, "gpu"), NS)
    await world.record("train", gpu=made["metadata"]["name"])
    await world.settled()
    await sync_of(world, informers).sync(NS, "train")
    assert list(await world.claims()) == [made["metadata"]["name"]]
    assert (await world.recorded())["gpu"] == made["metadata"]["name"]


@pytest.mark.spec("DA-6.1f")
async def test_neither_a_deleted_pod_nor_a_new_one_of_its_name_is_written(
    world: "World",
) -> None:
    await world.template()
    await world.pod(gpu="one-gpu")

    async def remove(verb: str, resource: Resource, args: Any) -> None:
        if resource == PODS:
            await world.store.delete(PODS, "train", NS, DeleteOptions(grace_period=0))

    async def replace(verb: str, resource: Resource, args: Any) -> None:
        if resource == PODS:
            await remove(verb, resource, args)
            await world.pod(gpu="one-gpu")

    await world.settled()
    world.watched.before = replace
    with pytest.raises(DevletError):
        await sync_of(world).sync(NS, "train")
    assert await world.recorded() == {}
    await world.settled()
    world.watched.before = remove
    await sync_of(world).sync(NS, "train")


@pytest.mark.spec("DA-6.1g")
async def test_a_reservation_does_not_overwrite_another_one(world: "World") -> None:
    await world.claim("shared")
    first = await world.pod("first", node="n1", gpu=":shared")
    await world.pod("second", node="n1", gpu=":shared")
    await world.allocate("shared")
    await world.settled()

    async def reserve(verb: str, resource: Resource, args: Any) -> None:
        world.watched.before = None
        await world.allocate("shared", first)

    world.watched.before = reserve
    await sync_of(world).sync(NS, "second")
    claim = (await world.claims())["shared"]
    assert {consumer["name"] for consumer in claim["status"]["reservedFor"]} == {"first", "second"}
