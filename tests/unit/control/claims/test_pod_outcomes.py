from typing import TYPE_CHECKING

import pytest

from devlet.cluster.client import DeleteOptions, MergePatch
from devlet.control.claims.pod_outcomes import PodOutcome, PodOutcomes, is_done, may_start
from devlet.control.informers import Informers
from devlet.objects.kinds import PODS
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodResourceClaim, PodSpec, PodStatus

if TYPE_CHECKING:
    from tests.unit.control.claims.conftest import World

pytestmark = pytest.mark.anyio
NS = "default"


def pod(uid: str = "u", phase: str = "Pending", node: str = "", *, deleting: bool = False) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", uid=uid, deletion_timestamp="2025-01-01T00:00:00Z" if deleting else None),
        spec=PodSpec(node_name=node, resource_claims=(PodResourceClaim(name="gpu"),)),
        status=PodStatus(phase=phase),
    )


@pytest.mark.spec("DA-6.2a")
def test_a_pod_is_done_when_it_is_finished_or_deleted_without_a_node() -> None:
    assert is_done(pod(phase="Succeeded")) and is_done(pod(phase="Failed", node="n")) and is_done(pod(deleting=True))
    assert not is_done(pod()) and not is_done(pod(node="n", deleting=True)) and not is_done(pod(phase="Running"))


def test_a_finished_or_deleted_pod_does_not_start() -> None:
    assert may_start(pod()) and may_start(pod(phase="Running", node="n"))
    assert not may_start(pod(deleting=True, node="n")) and not may_start(pod(phase="Failed"))


async def test_the_api_is_asked_about_pods_that_the_copy_does_not_have(world: "World") -> None:
    lives = await world.pod("lives", gpu="t")
    done = await world.pod("done", gpu="t")
    await world.finish("done")
    await world.settled()
    outcomes = PodOutcomes(world.store, world.informers.pods, remembered=10)
    for document, outcome in ((lives, PodOutcome.ALIVE), (done, PodOutcome.FINISHED)):
        where = NS, document["metadata"]["name"], document["metadata"]["uid"]
        assert outcomes.known(*where) is outcome and await outcomes.find(*where) is outcome
    for name in ("lives", "missing"):
        assert outcomes.known(NS, name, "other") is PodOutcome.UNKNOWN
        assert await outcomes.find(NS, name, "other") is PodOutcome.GONE


async def test_a_copy_that_may_be_outdated_is_not_trusted(world: "World") -> None:
    """The copy has a pod of that name, but the claim refers to a later one."""
    await world.pod("p", gpu="t")
    informers = Informers(world.store)
    async with informers.running():
        outcomes = PodOutcomes(world.store, informers.pods, remembered=10)
    await world.store.delete(PODS, "p", NS, DeleteOptions(grace_period=0))
    new = await world.pod("p", gpu="t")
    assert outcomes.known(NS, "p", new["metadata"]["uid"]) is PodOutcome.UNKNOWN
    assert await outcomes.find(NS, "p", new["metadata"]["uid"]) is PodOutcome.ALIVE
    await world.store.patch(PODS, "p", MergePatch({"status": {"phase": "Failed"}}), NS, subresource="status")
    assert await outcomes.find(NS, "p", new["metadata"]["uid"]) is PodOutcome.FINISHED


async def test_a_limited_number_of_deleted_pods_with_claims_is_remembered(world: "World") -> None:
    outcomes = PodOutcomes(world.store, world.informers.pods, remembered=2)
    for uid in ("a", "b", "c"):
        outcomes.removed(pod(uid))
    outcomes.removed(Pod(metadata=ObjectMeta(name="p", uid="without-claims")))
    known = {uid: outcomes.known(NS, "p", uid) for uid in ("a", "b", "c", "without-claims")}
    assert [uid for uid, outcome in known.items() if outcome is PodOutcome.GONE] == ["b", "c"]
    assert known["a"] is PodOutcome.UNKNOWN
