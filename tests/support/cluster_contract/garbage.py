"""Garbage collection: objects go after the last of their owners, and owners after those who block them."""

from typing import Any

import pytest

from devlet.cluster.client import Cluster, DeleteOptions, EventType, MergePatch, Propagation
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, EVENTS, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, SECRETS
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import eventually, eventually_gone, exists, watching
from tests.support.cluster_contract.specimens import config_map, owner_reference

HOLD = "example.com/hold"
FREE = MergePatch({"metadata": {"finalizers": None}})
NOBODY = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "00000000-0000-4000-8000-000000000000"}


def owned(name: str, *owners: Document, block: bool = False, **metadata: Any) -> Document:
    """A ConfigMap with ConfigMaps as owners."""
    more = {"blockOwnerDeletion": True} if block else {}
    references = [owner_reference("v1", "ConfigMap", owner, **more) for owner in owners]
    return config_map(name, ownerReferences=references, **metadata)


def owner_names(document: Document) -> list[str]:
    return [reference["name"] for reference in document["metadata"].get("ownerReferences", [])]


def propagate(propagation: Propagation) -> DeleteOptions:
    return DeleteOptions(propagation=propagation)


@pytest.mark.spec("KA-3.6")
class GarbageContract(Contract):
    @pytest.fixture(autouse=True)
    def _needs_a_collector(self) -> None:
        if not self.collects_garbage:
            pytest.skip("nobody collects garbage here")

    async def test_dependents_follow_in_the_background(self, cluster: Cluster, namespace: str) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"), namespace)
        child = await cluster.create(CONFIG_MAPS, owned("child", owner), namespace)
        await cluster.create(CONFIG_MAPS, owned("grandchild", child), namespace)
        await cluster.delete(CONFIG_MAPS, "owner", namespace, propagate(Propagation.BACKGROUND))
        assert not await exists(cluster, CONFIG_MAPS, "owner", namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "child", namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "grandchild", namespace)

    async def test_background_is_the_default(self, cluster: Cluster, namespace: str) -> None:
        owner = await cluster.create(PODS, specimens.pod("p"), namespace)
        reference = owner_reference("v1", "Pod", owner, controller=True)
        await cluster.create(RESOURCE_CLAIMS, specimens.claim("c", ownerReferences=[reference]), namespace)
        await cluster.delete(PODS, "p", namespace)
        await eventually_gone(cluster, RESOURCE_CLAIMS, "c", namespace)

    async def test_in_the_foreground_the_owner_waits_for_those_who_block(
        self, cluster: Cluster, namespace: str
    ) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"), namespace)
        await cluster.create(CONFIG_MAPS, owned("child", owner, block=True, finalizers=[HOLD]), namespace)
        marked = await cluster.delete(CONFIG_MAPS, "owner", namespace, propagate(Propagation.FOREGROUND))
        assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
        await eventually(cluster, CONFIG_MAPS, "child", namespace, lambda c: "deletionTimestamp" in c["metadata"])
        assert await exists(cluster, CONFIG_MAPS, "owner", namespace)
        await cluster.patch(CONFIG_MAPS, "child", FREE, namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "owner", namespace)

    async def test_the_owner_goes_last(self, cluster: Cluster, namespace: str) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"), namespace)
        child = await cluster.create(CONFIG_MAPS, owned("child", owner, block=True), namespace)
        await cluster.create(CONFIG_MAPS, owned("grandchild", child, block=True), namespace)
        async with watching(cluster, CONFIG_MAPS, namespace) as stream:
            await cluster.delete(CONFIG_MAPS, "owner", namespace, propagate(Propagation.FOREGROUND))
            gone: list[str] = []
            while len(gone) < 3:
                event = await stream.next()
                if event.type is EventType.DELETED:
                    gone.append(event.object["metadata"]["name"])
        assert gone == ["grandchild", "child", "owner"]

    async def test_who_does_not_block_is_not_waited_for(self, cluster: Cluster, namespace: str) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"), namespace)
        await cluster.create(CONFIG_MAPS, owned("child", owner, finalizers=[HOLD]), namespace)
        await cluster.delete(CONFIG_MAPS, "owner", namespace, propagate(Propagation.FOREGROUND))
        await eventually_gone(cluster, CONFIG_MAPS, "owner", namespace)
        await eventually(cluster, CONFIG_MAPS, "child", namespace, lambda c: "deletionTimestamp" in c["metadata"])
        await cluster.patch(CONFIG_MAPS, "child", FREE, namespace)

    async def test_orphans_stay_without_their_owner(self, cluster: Cluster, namespace: str) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"), namespace)
        other = await cluster.create(CONFIG_MAPS, config_map("other"), namespace)
        await cluster.create(CONFIG_MAPS, owned("child", owner), namespace)
        await cluster.create(CONFIG_MAPS, owned("shared", owner, other), namespace)
        await cluster.delete(CONFIG_MAPS, "owner", namespace, propagate(Propagation.ORPHAN))
        await eventually_gone(cluster, CONFIG_MAPS, "owner", namespace)
        assert owner_names(await cluster.get(CONFIG_MAPS, "child", namespace)) == []
        assert owner_names(await cluster.get(CONFIG_MAPS, "shared", namespace)) == ["other"]

    async def test_an_owner_without_dependents_is_orphaned_and_gone(self, cluster: Cluster, namespace: str) -> None:
        for name, propagation in (("a", Propagation.ORPHAN), ("b", Propagation.FOREGROUND)):
            await cluster.create(CONFIG_MAPS, config_map(name), namespace)
            await cluster.delete(CONFIG_MAPS, name, namespace, propagate(propagation))
            await eventually_gone(cluster, CONFIG_MAPS, name, namespace)

    async def test_one_living_owner_is_enough(self, cluster: Cluster, namespace: str) -> None:
        first = await cluster.create(CONFIG_MAPS, config_map("first"), namespace)
        second = await cluster.create(CONFIG_MAPS, config_map("second"), namespace)
        await cluster.create(CONFIG_MAPS, owned("child", first, second), namespace)
        await cluster.delete(CONFIG_MAPS, "first", namespace)
        await eventually(cluster, CONFIG_MAPS, "child", namespace, lambda c: owner_names(c) == ["second"])
        await cluster.delete(CONFIG_MAPS, "second", namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "child", namespace)

    async def test_an_owner_that_never_was_counts_as_gone(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("child", ownerReferences=[NOBODY]), namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "child", namespace)

    async def test_another_object_of_the_same_name_is_no_owner(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("nobody"), namespace)
        await cluster.create(CONFIG_MAPS, config_map("child", ownerReferences=[NOBODY]), namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "child", namespace)

    async def test_an_owner_may_come_by_update(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("child"), namespace)
        patch = MergePatch({"metadata": {"ownerReferences": [NOBODY]}})
        await cluster.patch(CONFIG_MAPS, "child", patch, namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "child", namespace)

    async def test_an_owner_of_the_whole_cluster_owns_everywhere(self, cluster: Cluster, namespace: str) -> None:
        node = await cluster.create(NODES, specimens.node())
        reference = owner_reference("v1", "Node", node, controller=True)
        made = await cluster.create(RESOURCE_SLICES, specimens.resource_slice(ownerReferences=[reference]))
        await cluster.create(CONFIG_MAPS, config_map("child", ownerReferences=[reference]), namespace)
        await cluster.delete(NODES, node["metadata"]["name"])
        await eventually_gone(cluster, RESOURCE_SLICES, made["metadata"]["name"])
        await eventually_gone(cluster, CONFIG_MAPS, "child", namespace)

    async def test_owners_and_dependents_of_many_kinds(self, cluster: Cluster, namespace: str) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"), namespace)
        reference = owner_reference("v1", "ConfigMap", owner)
        await cluster.create(SECRETS, specimens.named("s", ownerReferences=[reference]), namespace)
        await cluster.create(PODS, specimens.pod("p", ownerReferences=[reference]), namespace)
        await cluster.delete(CONFIG_MAPS, "owner", namespace)
        await eventually_gone(cluster, SECRETS, "s", namespace)
        await eventually_gone(cluster, PODS, "p", namespace)

    async def test_an_owner_in_a_namespace_cannot_own_the_cluster(self, cluster: Cluster, namespace: str) -> None:
        node = await cluster.create(NODES, specimens.node(ownerReferences=[NOBODY]))
        await cluster.create(CONFIG_MAPS, config_map("marker", ownerReferences=[NOBODY]), namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "marker", namespace)
        assert await exists(cluster, NODES, node["metadata"]["name"])
        await cluster.delete(NODES, node["metadata"]["name"])

    async def test_an_owner_of_an_unknown_kind_is_left_in_peace(self, cluster: Cluster, namespace: str) -> None:
        foreign = {**NOBODY, "apiVersion": "unknown.example.com/v1", "kind": "Thing"}
        await cluster.create(CONFIG_MAPS, config_map("child", ownerReferences=[foreign]), namespace)
        await cluster.create(CONFIG_MAPS, config_map("marker", ownerReferences=[NOBODY]), namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "marker", namespace)
        assert await exists(cluster, CONFIG_MAPS, "child", namespace)

    async def test_events_are_not_collected(self, cluster: Cluster, namespace: str) -> None:
        event = specimens.event(namespace, "e")
        event["metadata"]["ownerReferences"] = [NOBODY]
        await cluster.create(EVENTS, event, namespace)
        await cluster.create(CONFIG_MAPS, config_map("marker", ownerReferences=[NOBODY]), namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "marker", namespace)
        assert await exists(cluster, EVENTS, "e", namespace)

    async def test_a_ring_of_owners_is_no_obstacle(self, cluster: Cluster, namespace: str) -> None:
        first = await cluster.create(CONFIG_MAPS, config_map("first"), namespace)
        second = await cluster.create(CONFIG_MAPS, owned("second", first, block=True), namespace)
        back = [owner_reference("v1", "ConfigMap", second, blockOwnerDeletion=True)]
        await cluster.patch(CONFIG_MAPS, "first", MergePatch({"metadata": {"ownerReferences": back}}), namespace)
        await cluster.delete(CONFIG_MAPS, "first", namespace, propagate(Propagation.FOREGROUND))
        await eventually_gone(cluster, CONFIG_MAPS, "first", namespace)
        await eventually_gone(cluster, CONFIG_MAPS, "second", namespace)

    async def test_a_dependent_that_is_going_is_orphaned_too(self, cluster: Cluster, namespace: str) -> None:
        owner = await cluster.create(CONFIG_MAPS, config_map("owner"), namespace)
        await cluster.create(CONFIG_MAPS, owned("child", owner, finalizers=[HOLD]), namespace)
        await cluster.delete(CONFIG_MAPS, "child", namespace)
        await cluster.delete(CONFIG_MAPS, "owner", namespace, propagate(Propagation.ORPHAN))
        await eventually_gone(cluster, CONFIG_MAPS, "owner", namespace)
        await cluster.patch(CONFIG_MAPS, "child", FREE, namespace)
