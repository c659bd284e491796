"""Chapter 6 of the allocation rules, end to end over the real store."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import DeleteOptions, MergePatch
from devlet.control.reservations import FULL
from devlet.errors import Conflict, Unavailable
from devlet.kit.parts import running
from devlet.objects.documents import Document, view
from devlet.objects.kinds import NODES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.validation.claim_status import RESERVED_FOR_MAX

if TYPE_CHECKING:
    from tests.unit.control.claims.conftest import World

pytestmark = pytest.mark.anyio
NS = "default"
FINALIZER = "resource.kubernetes.io/delete-protection"
ENTRY = "resource.kubernetes.io/pod-claim-name"


IS = {"operator": "In"}


def consumers(claim: Document) -> list[str]:
    return [consumer["name"] for consumer in claim["status"].get("reservedFor", [])]


# Claims for pods (6.1).


@pytest.mark.spec("DA-6.1a")
async def test_a_pod_gets_a_claim_for_each_template_entry_and_its_status_names_them(world: "World") -> None:
    await world.template("one-gpu")
    await world.template("one-nic")
    await world.claim("shared")
    async with world.working():
        pod = await world.pod(gpu="one-gpu", nic="one-nic", other=":shared")
        await world.settled()
    recorded, claims = await world.recorded(), await world.claims()
    assert recorded.keys() == {"gpu", "nic"} and claims.keys() == {*recorded.values(), "shared"}
    for entry, name in recorded.items():
        metadata = claims[name or ""]["metadata"]
        assert metadata["generateName"] == f"train-{entry}-" and metadata["name"].startswith(f"train-{entry}-")
        assert metadata["annotations"] == {ENTRY: entry} and metadata["finalizers"] == [FINALIZER]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": pod["metadata"]["uid"], "controller": True}
        assert metadata["ownerReferences"] == [owner]
    assert world.watched.writes.count(("create", "resourceclaims")) == 2
    assert world.watched.writes.count(("patch", "pods")) == 1


async def test_pods_that_exist_at_the_start_get_their_claims(world: "World") -> None:
    await world.template()
    await world.pod(gpu="one-gpu")
    async with world.working():
        await world.settled()
        assert len(await world.claims()) == 1


@pytest.mark.spec("DA-6.1b")
async def test_a_recorded_claim_of_the_pod_is_kept(world: "World") -> None:
    await world.template()
    async with world.working():
        await world.pod(gpu="one-gpu")
        await world.settled()
        writes = list(world.watched.writes)
        await world.store.patch(PODS, "train", MergePatch({"metadata": {"labels": {"a": "b"}}}), NS)
        await world.settled()
        assert world.watched.writes == writes


@pytest.mark.spec("DA-6.1b")
async def test_a_claim_that_is_deleted_while_the_pod_waits_is_created_again(world: "World") -> None:
    await world.template()
    async with world.working():
        await world.pod(gpu="one-gpu")
        await world.settled()
        before = (await world.recorded())["gpu"]
        await world.store.delete(RESOURCE_CLAIMS, before or "", NS)
        await world.settled()
        after = (await world.recorded())["gpu"]
        assert after != before and list(await world.claims()) == [after]


@pytest.mark.spec("DA-6.1b")
async def test_a_recorded_claim_of_another_pod_is_replaced_and_not_changed(world: "World") -> None:
    await world.template()
    await world.claim("foreign")
    await world.pod(gpu="one-gpu")
    await world.record("train", gpu="foreign")
    async with world.working():
        await world.settled()
        name = (await world.recorded())["gpu"]
        assert name != "foreign" and (await world.claims()).keys() == {name, "foreign"}


@pytest.mark.spec("DA-6.1b")
async def test_an_entry_recorded_as_needing_no_claim_gets_none(world: "World") -> None:
    await world.template()
    await world.pod(gpu="one-gpu", nic="one-gpu")
    await world.record("train", gpu=None)
    async with world.working():
        await world.settled()
        recorded = await world.recorded()
        assert recorded["gpu"] is None and recorded["nic"] is not None
        assert list(await world.claims()) == [recorded["nic"]]


@pytest.mark.spec("DA-6.1c")
async def test_a_claim_that_could_not_be_recorded_is_adopted_later(world: "World") -> None:
    await world.template()
    failures = 3

    async def refuse(verb: str, resource: Resource, args: Any) -> None:
        nonlocal failures
        if (verb, resource) == ("patch", PODS) and failures:
            failures -= 1
            raise Unavailable("not now")

    world.watched.before = refuse
    async with world.working():
        await world.pod(gpu="one-gpu")
        await world.settled()
        assert await world.recorded() == {} and len(await world.claims()) == 1
        await world.clock.advance(30)
        await world.settled()
        assert list(await world.claims()) == [(await world.recorded())["gpu"]]


@pytest.mark.spec("DA-6.1c")
async def test_a_claim_that_was_not_recorded_before_a_crash_is_adopted_by_the_next_controller(world: "World") -> None:
    await world.template()

    async def refuse(verb: str, resource: Resource, args: Any) -> None:
        if resource == PODS:
            raise Unavailable("dying")

    world.watched.before = refuse
    async with world.working():
        await world.pod(gpu="one-gpu", nic="one-gpu")
        await world.settled()
    claims = await world.claims()
    assert len(claims) == 2 and await world.recorded() == {}
    world.watched.before, world.controller = None, world.new_controller()
    async with world.working():
        await world.settled()
        assert {e: claims[n or ""]["metadata"]["annotations"][ENTRY] for e, n in (await world.recorded()).items()} == {
            "gpu": "gpu",
            "nic": "nic",
        }
        assert (await world.claims()).keys() == claims.keys()


@pytest.mark.spec("DA-6.1c")
async def test_a_claim_without_the_annotation_is_adopted_only_under_its_name_of_kubernetes_1_27(
    world: "World",
) -> None:
    await world.template()
    pod = await world.pod(gpu="one-gpu")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": pod["metadata"]["uid"], "controller": True}
    for name in ("another", "train-gpu"):
        await world.claim(name, ownerReferences=[owner])
    async with world.working():
        await world.settled()
        assert (await world.recorded())["gpu"] == "train-gpu" and len(await world.claims()) == 2


@pytest.mark.spec("DA-6.1c")
async def test_a_second_claim_for_an_entry_that_has_one_is_removed(world: "World") -> None:
    await world.template()
    async with world.working():
        pod = await world.pod(gpu="one-gpu")
        await world.settled()
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": pod["metadata"]["uid"], "controller": True}
        metadata: Any = {"annotations": {ENTRY: "gpu"}, "ownerReferences": [owner], "finalizers": [FINALIZER]}
        await world.claim("made-by-a-twin", **metadata)
        await world.settled()
        assert list(await world.claims()) == [(await world.recorded())["gpu"]]


@pytest.mark.spec("DA-6.1d", "DA-11.22")
async def test_labels_annotations_and_spec_come_from_the_template_which_stays_as_it_is(world: "World") -> None:
    await world.template(labels={"team": "a"}, annotations={"note": "x"})
    async with world.working():
        await world.pod("one", gpu="one-gpu")
        await world.pod("two", nic="one-gpu")
        await world.settled()
    template = await world.store.get(RESOURCE_CLAIM_TEMPLATES, "one-gpu", NS)
    assert template["spec"]["metadata"] == {"labels": {"team": "a"}, "annotations": {"note": "x"}}
    assert world.informers.templates.get("one-gpu", NS) == template
    for claim in (await world.claims()).values():
        assert claim["metadata"]["labels"] == {"team": "a"} and claim["metadata"]["annotations"]["note"] == "x"
        assert claim["spec"] == template["spec"]["spec"]


@pytest.mark.spec("DA-6.1e")
async def test_a_missing_template_is_reported_and_the_claim_is_created_when_it_is(world: "World") -> None:
    async with world.working():
        await world.pod(gpu="later")
        await world.settled()
        text = 'resource claim template "later": resourceclaimtemplate.resource.k8s.io "later" not found'
        assert await world.events() == [("FailedResourceClaimCreation", f"PodResourceClaim gpu: {text}")]
        assert world.clock.wakes_at == []
        await world.template("later")
        await world.settled()
        assert list(await world.claims()) == [(await world.recorded())["gpu"]]


@pytest.mark.spec("DA-6.1e")
async def test_claims_are_created_and_recorded_even_if_another_entry_has_to_wait(world: "World") -> None:
    await world.template()
    async with world.working():
        await world.pod(gpu="one-gpu", nic="later")
        await world.settled()
        first = await world.recorded()
        assert first.keys() == {"gpu"}
        await world.template("later")
        await world.settled()
        recorded = await world.recorded()
        assert recorded.keys() == {"gpu", "nic"} and recorded["gpu"] == first["gpu"]


@pytest.mark.spec("DA-6.1e")
async def test_a_refused_creation_is_reported_counted_and_retried(world: "World") -> None:
    await world.template()
    refusals = 2

    async def refuse(verb: str, resource: Resource, args: Any) -> None:
        nonlocal refusals
        if (verb, resource) == ("create", RESOURCE_CLAIMS) and refusals:
            refusals -= 1
            raise Conflict("quota exceeded")

    world.watched.before = refuse
    async with world.working():
        await world.pod(gpu="one-gpu")
        await world.settled()
        assert await world.claims() == {}
        await world.clock.advance(10)
        await world.settled()
        assert len(await world.claims()) == 1
        expected = (
            "FailedResourceClaimCreation",
            "PodResourceClaim gpu: create ResourceClaim train-gpu-: quota exceeded",
        )
        assert await world.events() == [expected]
    shown = world.metrics.text()
    assert 'resourceclaim_controller_creates_total{status="failure",admin_access="false"} 2\n' in shown
    assert 'resourceclaim_controller_creates_total{status="success",admin_access="false"} 1\n' in shown


@pytest.mark.spec("DA-6.1f", "DA-11.22")
async def test_the_status_is_applied_with_all_entries_and_one_manager_owns_them(world: "World") -> None:
    await world.template()
    async with world.working():
        await world.pod(gpu="one-gpu", nic="one-gpu")
        await world.settled()
        before = await world.recorded()
        await world.store.delete(RESOURCE_CLAIMS, before["gpu"] or "", NS)
        await world.settled()
        after = await world.recorded()
    assert after["nic"] == before["nic"] and after["gpu"] != before["gpu"]
    fields = (await world.store.get(PODS, "train", NS))["metadata"]["managedFields"]
    mine = [entry for entry in fields if entry["manager"] == "ResourceClaimController"]
    assert [(entry["operation"], entry["subresource"]) for entry in mine] == [("Apply", "status")]
    assert mine[0]["fieldsV1"]["f:status"]["f:resourceClaimStatuses"].keys() >= {'k:{"name":"gpu"}', 'k:{"name":"nic"}'}


@pytest.mark.spec("DA-6.1g")
async def test_a_pod_that_has_a_node_already_is_added_to_its_allocated_claims(world: "World") -> None:
    await world.template()
    first = await world.pod("first", node="n1", gpu=":shared")
    await world.claim("shared")
    await world.claim("waiting")
    async with world.working():
        await world.allocate("shared", first)
        await world.pod("second", node="n1", gpu=":shared", other=":waiting", own="one-gpu")
        await world.settled()
        claims = await world.claims()
        assert sorted(consumers(claims["shared"])) == ["first", "second"]
        assert all("allocation" not in c["status"] for name, c in claims.items() if name != "shared")
        own = (await world.recorded("second"))["own"] or ""
        await world.allocate(own)
        await world.settled()
        assert consumers((await world.claims())[own]) == ["second"]


@pytest.mark.spec("DA-6.1g")
async def test_claims_are_not_reserved_for_pods_without_a_node(world: "World") -> None:
    await world.claim("shared")
    async with world.working():
        await world.pod(gpu=":shared")
        await world.allocate("shared")
        await world.settled()
        assert consumers((await world.claims())["shared"]) == []


async def test_a_claim_is_not_reserved_for_a_pod_on_a_node_where_it_cannot_be_used(world: "World") -> None:
    await world.store.create(NODES, {"metadata": {"name": "n2", "labels": {"zone": "a"}}})
    await world.claim("local")
    await world.claim("attached")
    async with world.working():
        await world.allocate("local", selector={"matchFields": [{**IS, "key": "metadata.name", "values": ["n1"]}]})
        await world.allocate("attached", selector={"matchExpressions": [{**IS, "key": "zone", "values": ["a"]}]})
        await world.pod("train", node="n2", gpu=":local", net=":attached")
        await world.settled()
        claims = await world.claims()
        assert consumers(claims["local"]) == [] and consumers(claims["attached"]) == ["train"]
        where = "cannot be used on node n2: its allocation requires metadata.name In [n1]"
        assert await world.events() == [
            ("FailedResourceClaimReservation", f"the devices of ResourceClaim local {where}")
        ]


async def test_a_claim_is_reserved_when_the_node_gets_the_label_that_its_allocation_requires(world: "World") -> None:
    await world.store.create(NODES, {"metadata": {"name": "n2"}})
    await world.claim("attached")
    async with world.working():
        await world.allocate("attached", selector={"matchExpressions": [{**IS, "key": "zone", "values": ["a"]}]})
        await world.pod("train", node="n2", net=":attached")
        await world.settled()
        assert consumers((await world.claims())["attached"]) == []
        await world.store.patch(NODES, "n2", MergePatch({"metadata": {"labels": {"zone": "a"}}}))
        await world.settled()
        assert consumers((await world.claims())["attached"]) == ["train"]


@pytest.mark.spec("DA-6.1g")
async def test_a_pod_waits_for_a_claim_with_the_maximum_of_consumers_and_says_so(world: "World") -> None:
    await world.claim("shared")
    others = [{"apiGroup": "example.com", "resource": "jobs", "name": f"j{i}", "uid": f"u{i}"} for i in range(255)]
    first = await world.pod("first", node="n1", gpu=":shared")
    async with world.working():
        await world.allocate("shared", first, others=others)
        await world.pod("second", node="n1", gpu=":shared")
        await world.settled()
        claim = (await world.claims())["shared"]
        assert len(consumers(claim)) == RESERVED_FOR_MAX and "second" not in consumers(claim)
        assert await world.events() == [("FailedResourceClaimReservation", FULL.format("shared"))]
        await world.finish("first")
        await world.settled()
        assert "second" in consumers((await world.claims())["shared"])


async def test_pods_that_are_finished_or_being_deleted_get_nothing(world: "World") -> None:
    await world.template()
    await world.pod("finished", gpu="one-gpu")
    await world.finish("finished", "Failed")
    await world.pod("ending", node="n1", gpu="one-gpu")
    await world.store.delete(PODS, "ending", NS, DeleteOptions(grace_period=30))
    async with world.working():
        await world.settled()
    assert await world.claims() == {}


# Claims that are no longer used (6.2).


@pytest.mark.spec("DA-6.2a")
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_is_dropped_from_a_claim_and_the_others_stay(world: "World", phase: str) -> None:
    await world.claim("shared")
    first, second = await world.pod("first", node="n1", gpu=":shared"), await world.pod("second", gpu=":shared")
    alien = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    async with world.working():
        await world.allocate("shared", first, second, others=[alien])
        await world.finish("first", phase)
        await world.settled()
        claim = (await world.claims())["shared"]
        assert consumers(claim) == ["second", "g"] and "allocation" in claim["status"]
        await world.remove("second")
        await world.settled()
        claim = (await world.claims())["shared"]
        assert consumers(claim) == ["g"] and "allocation" in claim["status"]


@pytest.mark.spec("DA-6.2a")
async def test_deleted_replaced_and_never_scheduled_pods_are_removed_and_running_ones_kept(world: "World") -> None:
    await world.claim("shared")
    pods = [await world.pod(name, gpu=":shared") for name in ("removed", "replaced", "ending", "ends-on-a-node")]
    await world.bind("ends-on-a-node")
    hold = MergePatch({"metadata": {"finalizers": ["example.com/hold"]}})
    await world.store.patch(PODS, "ending", hold, NS)
    async with world.working():
        await world.allocate("shared", *pods)
        for name in ("removed", "replaced", "ending"):
            await world.store.delete(PODS, name, NS)
        await world.store.delete(PODS, "ends-on-a-node", NS, DeleteOptions(grace_period=30))
        await world.pod("replaced", gpu=":shared")
        await world.settled()
        assert consumers((await world.claims())["shared"]) == ["ends-on-a-node"]


@pytest.mark.spec("DA-6.2a")
async def test_the_api_is_asked_about_a_pod_that_was_never_seen_and_only_then(world: "World") -> None:
    await world.claim("shared")
    seen = await world.pod("seen", gpu=":shared")
    stranger = {"resource": "pods", "name": "stranger", "uid": "unknown"}
    async with world.working():
        await world.allocate("shared", seen)
        await world.remove("seen")
        await world.settled()
        assert world.watched.questions == 0
        await world.allocate("shared", others=[stranger])
        await world.settled()
        assert world.watched.questions == 1
        assert "allocation" not in (await world.claims())["shared"]["status"]


@pytest.mark.spec("DA-6.2a")
async def test_reservations_of_pods_that_are_gone_are_removed_at_the_start(world: "World") -> None:
    await world.claim("shared")
    gone, replaced = await world.pod("gone", gpu=":shared"), await world.pod("replaced", gpu=":shared")
    await world.allocate("shared", gone, replaced)
    for name in ("gone", "replaced"):
        await world.remove(name)
    await world.pod("replaced", gpu=":shared")
    async with world.working():
        await world.settled()
        assert consumers((await world.claims())["shared"]) == []


@pytest.mark.spec("DA-6.2b", "DA-6.3")
async def test_allocation_and_finalizer_are_removed_with_the_last_consumer(world: "World") -> None:
    await world.claim("shared", finalizers=["example.com/mine"])
    pod = await world.pod(gpu=":shared")
    async with world.working():
        await world.allocate("shared", pod)
        await world.finish("train")
        await world.settled()
        claim = (await world.claims())["shared"]
        assert claim["status"] == {} and claim["metadata"]["finalizers"] == ["example.com/mine"]
        again = await world.pod("again", gpu=":shared")
        await world.allocate("shared", again)
        await world.settled()
        claim = (await world.claims())["shared"]
        assert consumers(claim) == ["again"] and FINALIZER in claim["metadata"]["finalizers"]


@pytest.mark.spec("DA-6.2b")
async def test_a_claim_that_was_never_reserved_keeps_its_allocation(world: "World") -> None:
    await world.claim("early")
    async with world.working():
        await world.allocate("early")
        await world.settled()
        claim = (await world.claims())["early"]
        assert "allocation" in claim["status"] and claim["metadata"]["finalizers"] == [FINALIZER]


@pytest.mark.spec("DA-6.2b")
async def test_a_claim_without_our_finalizer_is_not_deallocated(world: "World") -> None:
    await world.claim("theirs")
    pod = await world.pod(gpu=":theirs")
    await world.allocate("theirs", pod)
    await world.store.patch(RESOURCE_CLAIMS, "theirs", MergePatch({"metadata": {"finalizers": None}}), NS)
    await world.finish("train")
    async with world.working():
        await world.settled()
        claim = (await world.claims())["theirs"]
        assert consumers(claim) == [] and "allocation" in claim["status"]


@pytest.mark.spec("DA-6.2b")
async def test_a_reservation_at_the_last_moment_is_kept(world: "World") -> None:
    await world.claim("shared")
    first, second = await world.pod("first", gpu=":shared"), await world.pod("second", gpu=":shared")
    await world.allocate("shared", first)

    async def reserve(verb: str, resource: Resource, args: Any) -> None:
        if resource == RESOURCE_CLAIMS:
            world.watched.before = None
            await world.allocate("shared", first, second)

    world.watched.before = reserve
    async with world.working():
        await world.finish("first")
        await world.settled()
        await world.clock.advance(10)
        await world.settled()
        claim = (await world.claims())["shared"]
        assert consumers(claim) == ["second"] and "allocation" in claim["status"]


@pytest.mark.spec("DA-6.2c")
@pytest.mark.parametrize("allocated", [True, False])
async def test_an_unused_claim_that_is_being_deleted_is_released(world: "World", allocated: bool) -> None:
    await world.claim("early", finalizers=[FINALIZER])
    if allocated:
        await world.allocate("early")
    async with world.working():
        await world.store.delete(RESOURCE_CLAIMS, "early", NS)
        await world.settled()
        assert await world.claims() == {}


@pytest.mark.spec("DA-6.2c")
async def test_a_claim_with_another_finalizer_is_deallocated_when_it_is_deleted(world: "World") -> None:
    await world.claim("early", finalizers=["example.com/mine"])
    await world.allocate("early")
    async with world.working():
        await world.store.delete(RESOURCE_CLAIMS, "early", NS)
        await world.settled()
        claim = (await world.claims())["early"]
        assert claim["status"] == {} and claim["metadata"]["finalizers"] == ["example.com/mine"]


@pytest.mark.spec("DA-6.2c")
async def test_a_deleted_claim_stays_as_long_as_it_is_in_use(world: "World") -> None:
    await world.claim("shared")
    pod = await world.pod(node="n1", gpu=":shared")
    async with world.working():
        await world.allocate("shared", pod)
        await world.store.delete(RESOURCE_CLAIMS, "shared", NS)
        await world.settled()
        assert consumers((await world.claims())["shared"]) == ["train"]
        await world.finish("train")
        await world.settled()
        assert await world.claims() == {}


@pytest.mark.spec("DA-6.2d")
async def test_claims_of_a_finished_pod_are_deleted_and_not_created_again(world: "World") -> None:
    await world.template()
    async with world.working():
        pod = await world.pod(node="n1", gpu="one-gpu", nic="one-gpu")
        await world.settled()
        await world.allocate((await world.recorded())["gpu"] or "", pod)
        before = len(world.watched.writes)
        await world.finish("train")
        await world.settled()
        assert await world.claims() == {}
        assert len(world.watched.writes) - before == 4  # two for each claim


@pytest.mark.spec("DA-6.2d")
async def test_a_claim_that_another_pod_uses_is_not_deleted_with_its_owner(world: "World") -> None:
    await world.template()
    async with world.working():
        pod = await world.pod(node="n1", gpu="one-gpu")
        await world.settled()
        name = (await world.recorded())["gpu"] or ""
        guest = await world.pod("guest", node="n1", gpu=f":{name}")
        await world.allocate(name, pod, guest)
        await world.finish("train")
        await world.settled()
        assert consumers((await world.claims())[name]) == ["guest"]
        await world.finish("guest")
        await world.settled()
        assert await world.claims() == {}


@pytest.mark.spec("DA-6.2d")
async def test_a_new_pod_of_the_same_name_gets_its_own_claims(world: "World") -> None:
    await world.template()
    async with world.working():
        pod = await world.pod(node="n1", gpu="one-gpu")
        await world.settled()
        before = (await world.recorded())["gpu"] or ""
        await world.allocate(before, pod)
        await world.remove("train")
        await world.pod(node="n1", gpu="one-gpu")
        await world.settled()
        after = (await world.recorded())["gpu"]
        assert after != before and list(await world.claims()) == [after]


@pytest.mark.spec("DA-6.2d")
async def test_a_pod_that_is_replaced_before_its_claims_are_recorded_leaves_no_claims(world: "World") -> None:
    await world.template()

    async def replace(verb: str, resource: Resource, args: Any) -> None:
        if (verb, resource) == ("patch", PODS):
            world.watched.before = None
            await world.remove("train")
            await world.pod(gpu="one-gpu")

    world.watched.before = replace
    async with world.working():
        await world.pod(gpu="one-gpu")
        await world.settled()
        await world.clock.advance(10)
        await world.settled()
        recorded = await world.recorded()
        assert list(await world.claims()) == [recorded["gpu"]]


@pytest.mark.spec("DA-6.2d")
async def test_the_claim_of_a_replaced_pod_is_deleted_even_if_the_deletion_was_not_observed(world: "World") -> None:
    await world.template()
    async with world.working():
        await world.pod(gpu="one-gpu")
        await world.settled()
    await world.remove("train")
    await world.pod(gpu="one-gpu")
    world.controller = world.new_controller()
    async with world.working():
        await world.settled()
        assert list(await world.claims()) == [(await world.recorded())["gpu"]]


@pytest.mark.spec("DA-6.2d")
async def test_the_claim_of_an_unknown_pod_is_left_to_the_garbage_collector(world: "World") -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "unknown", "uid": "u", "controller": True}
    await world.claim("orphan", ownerReferences=[owner])
    async with world.working():
        await world.settled()
        assert list(await world.claims()) == ["orphan"]
        assert world.watched.questions == 0


@pytest.mark.spec("DA-6.2e")
@pytest.mark.parametrize("removed", [True, False])
async def test_the_claim_for_extended_resources_is_deleted_with_its_pod(world: "World", removed: bool) -> None:
    spec = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"example.com/gpu": "1"}}}]}
    pod = await world.store.create(PODS, {"metadata": {"name": "train"}, "spec": spec}, NS)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": pod["metadata"]["uid"], "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    await world.claim("train-extended-resources-x", ownerReferences=[owner], annotations=annotations)
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}
    status = {"resourceClaimName": "train-extended-resources-x", "requestMappings": [mapping]}
    patch = MergePatch({"status": {"extendedResourceClaimStatus": status}})
    await world.store.patch(PODS, "train", patch, NS, subresource="status")
    async with world.working():
        await world.allocate("train-extended-resources-x", pod)
        await world.settled()
        assert consumers((await world.claims())["train-extended-resources-x"]) == ["train"]
        await (world.remove("train") if removed else world.finish("train"))
        await world.settled()
        assert await world.claims() == {}
        assert world.watched.questions == 0


async def test_a_controller_that_runs_again_handles_the_changes_in_between(world: "World") -> None:
    await world.template()
    async with world.working():
        await world.settled()
    await world.pod("one", gpu="one-gpu")
    await world.settled()
    assert await world.claims() == {}
    async with world.working():
        await world.settled()
        assert len(await world.claims()) == 1
    await world.finish("one")
    async with running(world.controller.run):
        await world.settled()
        assert await world.claims() == {}


async def test_created_claims_are_remembered_only_until_the_copy_has_them(world: "World") -> None:
    made = await world.claim("made")
    async with world.working():
        await world.settled()
        known = world.controller._known
        later = {**made, "metadata": {**made["metadata"], "resourceVersion": str(world.store.version + 1000)}}
        known.made(view(ResourceClaim, later))
        assert known._made
        await world.store.patch(RESOURCE_CLAIMS, "made", MergePatch({"metadata": {"labels": {"a": "b"}}}), NS)
        await world.settled()
        assert not known._made and not known._made_for
