"""The rules for metadata: what clients say, what the server decides, and what may never change."""

import re
import uuid
from typing import Any

import pytest

from devlet.cluster.client import Cluster, MergePatch, Patch, StrategicMergePatch
from devlet.errors import BadRequest, Conflict, Forbidden, InvalidInput, InvalidObject, NotFound
from devlet.objects.documents import Document, copy
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
    Resource,
)
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.specimens import config_map, unique, version

SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]{5}"
ELSEWHEN = "2001-02-03T04:05:06Z"
WITHOUT_GENERATION: list[tuple[Resource, Document]] = [
    (CONFIG_MAPS, config_map()),
    (SECRETS, specimens.named()),
    (LEASES, specimens.lease()),
    (NODES, specimens.node()),
    (NAMESPACES, specimens.named()),
    (RESOURCE_CLAIMS, specimens.claim()),
    (RESOURCE_CLAIM_TEMPLATES, specimens.claim_template()),
]


def fields(error: InvalidObject) -> set[str]:
    return {cause.field for cause in error.causes}


@pytest.mark.spec("KA-3.1-metadata")
class MetadataContract(Contract):
    async def test_a_name_is_required(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(CONFIG_MAPS, {"data": {}}, namespace)
        assert "metadata.name" in fields(refused.value)

    @pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dot.", "a/b", "x" * 254, "ü"])
    async def test_a_name_is_a_subdomain(self, cluster: Cluster, namespace: str, name: str) -> None:
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(CONFIG_MAPS, config_map(name), namespace)
        assert "metadata.name" in fields(refused.value)

    async def test_a_name_may_have_dots_and_253_characters(self, cluster: Cluster, namespace: str) -> None:
        name = "a." + "b" * 251
        assert (await cluster.create(CONFIG_MAPS, config_map(name), namespace))["metadata"]["name"] == name

    @pytest.mark.parametrize("name", ["with.dot", "x" * 64])
    async def test_the_name_of_a_namespace_is_a_label(self, cluster: Cluster, name: str) -> None:
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(NAMESPACES, specimens.named(name))
        assert "metadata.name" in fields(refused.value)

    @pytest.mark.parametrize(
        "patch", [MergePatch({"metadata": {"name": "b"}}), MergePatch({"metadata": {"name": None}})]
    )
    async def test_a_patch_cannot_rename(self, cluster: Cluster, namespace: str, patch: Patch) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        with pytest.raises(InvalidInput):
            await cluster.patch(CONFIG_MAPS, "a", patch, namespace)
        with pytest.raises(NotFound):
            await cluster.get(CONFIG_MAPS, "b", namespace)

    async def test_a_generated_name_is_the_prefix_and_five_characters(self, cluster: Cluster, namespace: str) -> None:
        found = set()
        for _ in range(20):
            created = await cluster.create(CONFIG_MAPS, {"metadata": {"generateName": "gen-"}}, namespace)
            assert created["metadata"]["generateName"] == "gen-"
            assert re.fullmatch(f"gen-{SUFFIX}", created["metadata"]["name"])
            found.add(created["metadata"]["name"])
        assert len(found) == 20

    async def test_the_prefix_of_a_generated_name_is_cut(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, {"metadata": {"generateName": "g" * 70}}, namespace)
        assert re.fullmatch("g" * 58 + SUFFIX, created["metadata"]["name"])

    async def test_a_name_beats_generatename(self, cluster: Cluster, namespace: str) -> None:
        document = {"metadata": {"name": "mine", "generateName": "gen-"}}
        assert (await cluster.create(CONFIG_MAPS, document, namespace))["metadata"]["name"] == "mine"

    async def test_the_namespace_comes_from_the_request(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        assert created["metadata"]["namespace"] == namespace
        with pytest.raises(BadRequest):
            await cluster.create(CONFIG_MAPS, config_map("b", namespace="default"), namespace)

    async def test_an_object_needs_its_namespace_to_exist(self, cluster: Cluster) -> None:
        absent = unique("absent")
        with pytest.raises(NotFound) as refused:
            await cluster.create(CONFIG_MAPS, config_map(), absent)
        assert str(refused.value) == f'namespaces "{absent}" not found'

    async def test_nothing_is_created_in_a_namespace_that_terminates(self, cluster: Cluster, namespace: str) -> None:
        name = unique("ending")
        await cluster.create(NAMESPACES, specimens.named(name, finalizers=["example.com/hold"]))
        await cluster.delete(NAMESPACES, name)
        with pytest.raises(Forbidden) as refused:
            await cluster.create(CONFIG_MAPS, config_map(), name)
        causes = [(cause.reason, cause.field) for cause in refused.value.causes]
        assert causes == [("NamespaceTerminating", "metadata.namespace")]
        await cluster.patch(NAMESPACES, name, MergePatch({"metadata": {"finalizers": None}}))

    async def test_a_cluster_scoped_object_has_no_namespace(self, cluster: Cluster) -> None:
        created = await cluster.create(NODES, specimens.node())
        assert "namespace" not in created["metadata"]

    async def test_a_uid_is_random_and_the_servers(self, cluster: Cluster, namespace: str) -> None:
        wanted = str(uuid.uuid4())
        created = await cluster.create(CONFIG_MAPS, config_map("a", uid=wanted), namespace)
        got = uuid.UUID(created["metadata"]["uid"])
        assert (got.version, str(got) != wanted) == (4, True)
        await cluster.delete(CONFIG_MAPS, "a", namespace)
        again = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        assert again["metadata"]["uid"] != created["metadata"]["uid"]

    async def test_an_update_for_another_uid_is_a_conflict(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        created["metadata"]["uid"] = str(uuid.uuid4())
        del created["metadata"]["resourceVersion"]
        with pytest.raises(Conflict):
            await cluster.update(CONFIG_MAPS, created)

    async def test_an_update_without_uid_and_times_keeps_them(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        updated = await cluster.update(CONFIG_MAPS, config_map("a", namespace=namespace, data={"k": "w"}))
        for key in ("uid", "creationTimestamp"):
            assert updated["metadata"][key] == created["metadata"][key]

    async def test_a_patch_cannot_change_the_uid(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        patch = MergePatch({"metadata": {"uid": str(uuid.uuid4())}})
        with pytest.raises(InvalidObject) as refused:
            await cluster.patch(CONFIG_MAPS, "a", patch, namespace)
        assert fields(refused.value) == {"metadata.uid"}

    async def test_times_are_the_servers_in_whole_seconds(self, cluster: Cluster, namespace: str) -> None:
        document = config_map("a", creationTimestamp=ELSEWHEN, deletionTimestamp=ELSEWHEN, deletionGracePeriodSeconds=9)
        metadata = (await cluster.create(CONFIG_MAPS, document, namespace))["metadata"]
        assert re.fullmatch(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
        assert not metadata.keys() & {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}

    async def test_an_update_cannot_begin_a_deletion(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        created["metadata"] |= {"deletionTimestamp": ELSEWHEN, "deletionGracePeriodSeconds": 0}
        try:
            await cluster.update(CONFIG_MAPS, created)
        except InvalidObject as refused:  # or it is ignored
            assert "metadata.deletionTimestamp" in fields(refused)
        current = await cluster.get(CONFIG_MAPS, "a", namespace)
        assert "deletionTimestamp" not in current["metadata"]
        assert current["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]

    async def test_one_counter_counts_for_all_kinds(self, cluster: Cluster, namespace: str) -> None:
        versions = [
            version(await cluster.create(CONFIG_MAPS, config_map("a"), namespace)),
            version(await cluster.create(SECRETS, specimens.named("a"), namespace)),
            version(await cluster.create(NODES, specimens.node())),
            version(await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), namespace)),
        ]
        assert versions == sorted(set(versions))

    async def test_a_new_object_has_no_version_yet(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(self.bad_request):
            await cluster.create(CONFIG_MAPS, config_map("a", resourceVersion="5"), namespace)
        with pytest.raises(NotFound):
            await cluster.get(CONFIG_MAPS, "a", namespace)

    @pytest.mark.parametrize(
        ("resource", "document"), WITHOUT_GENERATION, ids=lambda value: getattr(value, "plural", "")
    )
    async def test_some_kinds_have_no_generation(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document
    ) -> None:
        document = {**document, "metadata": {"name": unique()}}
        created = await cluster.create(resource, document, namespace if resource.namespaced else "")
        assert "generation" not in created["metadata"]

    async def test_an_event_has_no_generation(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(EVENTS, specimens.event(namespace), namespace)
        assert "generation" not in created["metadata"]

    async def test_the_generation_of_a_slice_counts_changes_of_spec(self, cluster: Cluster) -> None:
        document = specimens.resource_slice(generation=7)
        name = document["metadata"]["name"]
        assert (await cluster.create(RESOURCE_SLICES, document))["metadata"]["generation"] == 1
        labelled = await cluster.patch(RESOURCE_SLICES, name, MergePatch({"metadata": {"labels": {"a": "b"}}}))
        assert labelled["metadata"]["generation"] == 1
        changed = await cluster.patch(RESOURCE_SLICES, name, MergePatch({"spec": {"pool": {"generation": 2}}}))
        assert changed["metadata"]["generation"] == 2
        changed["metadata"]["generation"] = 9
        assert (await cluster.update(RESOURCE_SLICES, changed))["metadata"]["generation"] == 2

    async def test_the_generation_of_a_class_counts_changes_of_spec(self, cluster: Cluster) -> None:
        created = await cluster.create(DEVICE_CLASSES, specimens.device_class())
        assert created["metadata"]["generation"] == 1
        created["spec"]["selectors"] = [{"cel": {"expression": "true"}}]
        assert (await cluster.update(DEVICE_CLASSES, created))["metadata"]["generation"] == 2

    async def test_the_generation_of_a_pod_counts_spec_not_status(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(PODS, specimens.pod("p"), namespace)
        assert created["metadata"]["generation"] == 1
        phase = MergePatch({"status": {"phase": "Running"}})
        running = await cluster.patch(PODS, "p", phase, namespace, subresource="status")
        assert running["metadata"]["generation"] == 1
        image = StrategicMergePatch({"spec": {"containers": [{"name": "main", "image": "registry.example.com/app:2"}]}})
        assert (await cluster.patch(PODS, "p", image, namespace))["metadata"]["generation"] == 2

    async def test_managedfields_come_back_unchanged_or_are_cleared(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        assert await cluster.update(CONFIG_MAPS, copy(created)) == created
        cleared = await cluster.update(
            CONFIG_MAPS, {**created, "metadata": {**created["metadata"], "managedFields": []}}
        )
        assert cleared["data"] == created["data"]

    @pytest.mark.parametrize(
        ("metadata", "field"),
        [
            ({"labels": {"a": "x" * 64}}, "metadata.labels"),
            ({"labels": {"a": "white space"}}, "metadata.labels"),
            ({"labels": {"bad key": "x"}}, "metadata.labels"),
            ({"annotations": {"bad key": "x"}}, "metadata.annotations"),
            ({"annotations": {"a": "x" * (256 << 10)}}, "metadata.annotations"),
            ({"finalizers": ["not qualified/at/all"]}, "metadata.finalizers[0]"),
        ],
    )
    async def test_labels_annotations_and_finalizers_have_rules(
        self, cluster: Cluster, namespace: str, metadata: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(CONFIG_MAPS, config_map(**metadata), namespace)
        assert {found.split("[")[0] for found in fields(refused.value)} == {field.split("[")[0]}

    async def test_labels_and_annotations_may_be_long_but_not_longer(self, cluster: Cluster, namespace: str) -> None:
        labels, annotations = {"a": "x" * 63}, {"a": "x" * ((256 << 10) - 1)}
        created = await cluster.create(CONFIG_MAPS, config_map(labels=labels, annotations=annotations), namespace)
        assert (created["metadata"]["labels"], created["metadata"]["annotations"]) == (labels, annotations)

    @pytest.mark.parametrize("missing", ["apiVersion", "kind", "name", "uid"])
    async def test_an_owner_is_named_completely(self, cluster: Cluster, namespace: str, missing: str) -> None:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
        del owner[missing]
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(CONFIG_MAPS, config_map(ownerReferences=[owner]), namespace)
        assert all(found.startswith("metadata.ownerReferences") for found in fields(refused.value))

    async def test_an_object_has_one_controller_at_most(self, cluster: Cluster, namespace: str) -> None:
        owners = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n, "controller": True} for n in ("a", "b")
        ]
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(CONFIG_MAPS, config_map(ownerReferences=owners), namespace)
        assert fields(refused.value) == {"metadata.ownerReferences"}

    async def test_no_finalizer_is_added_during_deletion(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", finalizers=["example.com/a"]), namespace)
        await cluster.delete(CONFIG_MAPS, "a", namespace)
        both = MergePatch({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
        with pytest.raises(InvalidObject) as refused:
            await cluster.patch(CONFIG_MAPS, "a", both, namespace)
        assert fields(refused.value) == {"metadata.finalizers"}
        await cluster.patch(CONFIG_MAPS, "a", MergePatch({"metadata": {"finalizers": None}}), namespace)
