"""Deletion: at once, or marked until the last finalizer is gone; of one object or of many."""

import pytest

from devlet.cluster.client import (
    Cluster,
    DeleteOptions,
    EventType,
    ListOptions,
    MergePatch,
    Preconditions,
    Propagation,
)
from devlet.errors import BadRequest, Conflict, Forbidden, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import exists, names, watching
from tests.support.cluster_contract.specimens import config_map, unique, version

ANSWER_OBJECT: list[tuple[Resource, Document]] = [
    (PODS, specimens.pod("x")),
    (SERVICE_ACCOUNTS, specimens.named("x")),
    (RESOURCE_SLICES, specimens.resource_slice(unique("slice"))),
    (RESOURCE_CLAIMS, specimens.claim("x")),
    (RESOURCE_CLAIM_TEMPLATES, specimens.claim_template("x")),
    (DEVICE_CLASSES, specimens.device_class(unique("class"))),
]
ANSWER_STATUS: list[tuple[Resource, Document]] = [
    (CONFIG_MAPS, config_map("x")),
    (SECRETS, specimens.named("x")),
    (NODES, specimens.node(unique("node"))),
    (LEASES, specimens.lease("x")),
]
HOLD = "example.com/hold"
FREE = MergePatch({"metadata": {"finalizers": None}})


def plural(value: object) -> str:
    return getattr(value, "plural", "")


@pytest.mark.spec("KA-3.5")
class DeletionContract(Contract):
    @pytest.mark.parametrize(("resource", "document"), ANSWER_OBJECT, ids=plural)
    async def test_deleting_some_kinds_answers_the_object(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document
    ) -> None:
        where, name = namespace if resource.namespaced else "", document["metadata"]["name"]
        created = await cluster.create(resource, document, where)
        answer = await cluster.delete(resource, name, where)
        assert (answer["kind"], answer["metadata"]["uid"]) == (resource.kind.kind, created["metadata"]["uid"])
        assert not await exists(cluster, resource, name, where)

    @pytest.mark.parametrize(("resource", "document"), ANSWER_STATUS, ids=plural)
    async def test_deleting_other_kinds_answers_a_status(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document
    ) -> None:
        where, name = namespace if resource.namespaced else "", document["metadata"]["name"]
        created = await cluster.create(resource, document, where)
        answer = await cluster.delete(resource, name, where)
        assert (answer["kind"], answer["apiVersion"], answer["status"]) == ("Status", "v1", "Success")
        expected = {"name": name, "kind": resource.plural, "uid": created["metadata"]["uid"]}
        assert answer["details"] == expected | ({"group": resource.group} if resource.group else {})

    async def test_deleting_an_event_answers_a_status(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(EVENTS, specimens.event(namespace, "e"), namespace)
        assert (await cluster.delete(EVENTS, "e", namespace))["status"] == "Success"

    async def test_watchers_see_the_last_state_at_the_version_of_the_deletion(
        self, cluster: Cluster, namespace: str
    ) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a", labels={"a": "b"}), namespace)
        async with watching(cluster, CONFIG_MAPS, namespace) as stream:
            await cluster.delete(CONFIG_MAPS, "a", namespace)
            event = await stream.next()
        assert event.type is EventType.DELETED
        assert (event.object["data"], event.object["metadata"]["labels"]) == (created["data"], {"a": "b"})
        assert version(event.object) > version(created)

    async def test_a_deleted_name_is_free_again(self, cluster: Cluster, namespace: str) -> None:
        first = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        await cluster.delete(CONFIG_MAPS, "a", namespace)
        with pytest.raises(NotFound):
            await cluster.delete(CONFIG_MAPS, "a", namespace)
        second = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        assert (second["metadata"]["uid"] != first["metadata"]["uid"], version(second) > version(first)) == (True, True)

    async def test_a_finalizer_keeps_the_object_until_it_is_removed(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", finalizers=[HOLD]), namespace)
        async with watching(cluster, CONFIG_MAPS, namespace) as stream:
            marked = await cluster.delete(CONFIG_MAPS, "a", namespace)
            assert marked["metadata"]["deletionTimestamp"]
            assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
            again = await cluster.delete(CONFIG_MAPS, "a", namespace)
            assert again == marked
            final = await cluster.patch(CONFIG_MAPS, "a", FREE, namespace)
            assert "finalizers" not in final["metadata"]
            assert final["metadata"]["uid"] == marked["metadata"]["uid"]
            first, second = await stream.next(), await stream.next()
        assert [first.type, second.type] == [EventType.MODIFIED, EventType.DELETED]
        assert first.object == marked
        assert version(second.object) > version(marked)
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)

    async def test_an_update_that_removes_the_last_finalizer_removes_the_object(
        self, cluster: Cluster, namespace: str
    ) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", finalizers=[HOLD, "example.com/b"]), namespace)
        marked = await cluster.delete(CONFIG_MAPS, "a", namespace)
        marked["metadata"]["finalizers"] = ["example.com/b"]
        left = await cluster.update(CONFIG_MAPS, marked)
        assert await exists(cluster, CONFIG_MAPS, "a", namespace)
        del left["metadata"]["finalizers"]
        await cluster.update(CONFIG_MAPS, left)
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)

    async def test_an_object_that_goes_can_still_be_changed(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", finalizers=[HOLD]), namespace)
        await cluster.delete(CONFIG_MAPS, "a", namespace)
        patched = await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), namespace)
        assert (patched["data"], "deletionTimestamp" in patched["metadata"]) == ({"k": "w"}, True)
        restored = await cluster.patch(
            CONFIG_MAPS, "a", MergePatch({"metadata": {"deletionTimestamp": None}}), namespace
        )
        assert restored["metadata"]["deletionTimestamp"] == patched["metadata"]["deletionTimestamp"]
        await cluster.patch(CONFIG_MAPS, "a", FREE, namespace)

    @pytest.mark.parametrize(
        ("propagation", "finalizer"), [(Propagation.FOREGROUND, "foregroundDeletion"), (Propagation.ORPHAN, "orphan")]
    )
    async def test_a_propagation_is_a_finalizer(
        self, cluster: Cluster, namespace: str, propagation: Propagation, finalizer: str
    ) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", finalizers=[HOLD]), namespace)
        marked = await cluster.delete(CONFIG_MAPS, "a", namespace, DeleteOptions(propagation=propagation))
        assert set(marked["metadata"]["finalizers"]) == {HOLD, finalizer}
        await cluster.patch(CONFIG_MAPS, "a", FREE, namespace)

    async def test_background_is_no_finalizer(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        await cluster.delete(CONFIG_MAPS, "a", namespace, DeleteOptions(propagation=Propagation.BACKGROUND))
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)

    async def test_preconditions_name_the_object_and_the_version(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        uid, current = created["metadata"]["uid"], created["metadata"]["resourceVersion"]
        other = "00000000-0000-4000-8000-000000000000"
        for wrong in (Preconditions(uid=other), Preconditions(resource_version="1"), Preconditions(uid, "1")):
            with pytest.raises(Conflict):
                await cluster.delete(CONFIG_MAPS, "a", namespace, DeleteOptions(preconditions=wrong))
        right = DeleteOptions(preconditions=Preconditions(uid, current))
        await cluster.delete(CONFIG_MAPS, "a", namespace, right)
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)

    async def test_a_failed_precondition_says_which(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        options = DeleteOptions(preconditions=Preconditions(uid="other"))
        with pytest.raises(Conflict) as refused:
            await cluster.delete(CONFIG_MAPS, "a", namespace, options)
        uid = created["metadata"]["uid"]
        assert f"the UID in the precondition (other) does not match the UID in record ({uid})" in str(refused.value)

    @pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
    async def test_some_namespaces_stay(self, cluster: Cluster, name: str) -> None:
        with pytest.raises(Forbidden, match="this namespace may not be deleted"):
            await cluster.delete(NAMESPACES, name)
        assert "deletionTimestamp" not in (await cluster.get(NAMESPACES, name))["metadata"]

    async def test_a_namespace_terminates_until_it_is_finalized(self, cluster: Cluster) -> None:
        name = unique("ns")
        await cluster.create(NAMESPACES, specimens.named(name, finalizers=[HOLD]))
        marked = await cluster.delete(NAMESPACES, name)
        assert marked["status"]["phase"] == "Terminating"
        assert marked["metadata"]["deletionTimestamp"]
        assert await exists(cluster, NAMESPACES, name)
        try:
            final = {**marked, "spec": {"finalizers": []}}
            await cluster.update(NAMESPACES, final, subresource="finalize")
        except (Conflict, NotFound):
            pass  # a namespace controller was faster
        assert await exists(cluster, NAMESPACES, name), "it still has a finalizer"
        await cluster.patch(NAMESPACES, name, FREE)

    async def test_a_collection_is_deleted_by_selector(self, cluster: Cluster, namespace: str) -> None:
        for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {"x": "1"})):
            await cluster.create(CONFIG_MAPS, config_map(name, labels=labels), namespace)
        select = ListOptions(label_selector="x=1")
        deleted = await cluster.delete_collection(CONFIG_MAPS, namespace, select=select)
        assert names(deleted) == ["a", "c"]
        assert names(await cluster.list(CONFIG_MAPS, namespace)) == ["b"]
        fields = ListOptions(field_selector="metadata.name=b")
        await cluster.delete_collection(CONFIG_MAPS, namespace, select=fields)
        assert names(await cluster.list(CONFIG_MAPS, namespace)) == []

    async def test_a_collection_is_deleted_with_the_same_options(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(RESOURCE_CLAIMS, specimens.claim("free"), namespace)
        await cluster.create(RESOURCE_CLAIMS, specimens.claim("held", finalizers=[HOLD]), namespace)
        await cluster.delete_collection(RESOURCE_CLAIMS, namespace)
        held = await cluster.list(RESOURCE_CLAIMS, namespace)
        assert names(held) == ["held"]
        assert "deletionTimestamp" in held.items[0]["metadata"]
        await cluster.patch(RESOURCE_CLAIMS, "held", FREE, namespace)

    async def test_only_this_namespace_is_emptied(self, cluster: Cluster, namespace: str) -> None:
        other = unique("ns")
        await cluster.create(NAMESPACES, specimens.named(other))
        for where in (namespace, other):
            await cluster.create(CONFIG_MAPS, config_map("a"), where)
        await cluster.delete_collection(CONFIG_MAPS, namespace)
        assert names(await cluster.list(CONFIG_MAPS, namespace)) == []
        assert names(await cluster.list(CONFIG_MAPS, other)) == ["a"]

    async def test_a_collection_with_a_bad_selector_stays(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        with pytest.raises(BadRequest):
            await cluster.delete_collection(CONFIG_MAPS, namespace, select=ListOptions(label_selector="="))
        assert await exists(cluster, CONFIG_MAPS, "a", namespace)

    async def test_an_empty_collection_is_deleted_too(self, cluster: Cluster, namespace: str) -> None:
        assert names(await cluster.delete_collection(RESOURCE_CLAIMS, namespace)) == []
