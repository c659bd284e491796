"""Options of writes: dry runs that leave no trace, and what becomes of unknown fields."""

import pytest

from devlet.cluster.client import (
    ApplyPatch,
    Cluster,
    DeleteOptions,
    FieldValidation,
    MergePatch,
    StrategicMergePatch,
    WriteOptions,
)
from devlet.errors import AlreadyExists, BadRequest, Conflict, InvalidObject, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, LEASES, PODS, Resource
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import exists, watching
from tests.support.cluster_contract.specimens import config_map

DRY = WriteOptions(dry_run=True)
STRICT = WriteOptions(field_validation=FieldValidation.STRICT)
UNKNOWN: list[tuple[Resource, Document, str]] = [
    (CONFIG_MAPS, {**config_map("u"), "dataa": {}}, "dataa"),
    (
        PODS,
        {**specimens.named("u"), "spec": {"containers": [{"name": "c", "image": "i", "foo": 1}]}},
        "spec.containers[0].foo",
    ),
    (CONFIG_MAPS, {"metadata": {"name": "u", "labelz": {}}}, "metadata.labelz"),
]


@pytest.mark.spec("KA-3.4")
class OptionContract(Contract):
    async def test_a_dry_create_shows_the_object_and_stores_nothing(self, cluster: Cluster, namespace: str) -> None:
        shown = await cluster.create(PODS, specimens.pod("p"), namespace, options=DRY)
        assert shown["metadata"]["uid"] and shown["metadata"]["creationTimestamp"]
        assert not shown["metadata"].get("resourceVersion")
        assert shown["spec"]["restartPolicy"] == "Always"
        assert not await exists(cluster, PODS, "p", namespace)

    async def test_a_dry_create_checks_everything(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        with pytest.raises(AlreadyExists):
            await cluster.create(CONFIG_MAPS, config_map("a"), namespace, options=DRY)
        with pytest.raises(InvalidObject):
            await cluster.create(CONFIG_MAPS, config_map("Bad"), namespace, options=DRY)

    async def test_dry_writes_leave_the_object_and_its_watchers_alone(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        async with watching(cluster, CONFIG_MAPS, namespace) as stream:
            updated = await cluster.update(CONFIG_MAPS, {**created, "data": {"k": "w"}}, options=DRY)
            patched = await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"n": "1"}}), namespace, options=DRY)
            config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "v"}}
            apply = WriteOptions(dry_run=True, field_manager="m")
            await cluster.patch(CONFIG_MAPS, "b", ApplyPatch(config), namespace, options=apply)
            await cluster.delete(CONFIG_MAPS, "a", namespace, DeleteOptions(dry_run=True))
            await cluster.delete_collection(CONFIG_MAPS, namespace, DeleteOptions(dry_run=True))
            assert (updated["data"], patched["data"]) == ({"k": "w"}, {"k": "v", "n": "1"})
            assert await cluster.get(CONFIG_MAPS, "a", namespace) == created
            assert not await exists(cluster, CONFIG_MAPS, "b", namespace)
            await cluster.create(CONFIG_MAPS, config_map("next"), namespace)
            assert (await stream.next()).object["metadata"]["name"] == "next"

    async def test_dry_writes_fail_like_wet_ones(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        created["metadata"]["resourceVersion"] = "1"
        with pytest.raises(Conflict):
            await cluster.update(CONFIG_MAPS, created, options=DRY)
        with pytest.raises(NotFound):
            await cluster.patch(CONFIG_MAPS, "absent", MergePatch({}), namespace, options=DRY)
        with pytest.raises(NotFound):
            await cluster.delete(CONFIG_MAPS, "absent", namespace, DeleteOptions(dry_run=True))

    async def test_a_dry_update_creates_no_lease(self, cluster: Cluster, namespace: str) -> None:
        await cluster.update(LEASES, specimens.lease("l", namespace=namespace), options=DRY)
        assert not await exists(cluster, LEASES, "l", namespace)

    async def test_a_dry_removal_of_the_last_finalizer_removes_nothing(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", finalizers=["example.com/a"]), namespace)
        await cluster.delete(CONFIG_MAPS, "a", namespace)
        free = MergePatch({"metadata": {"finalizers": None}})
        await cluster.patch(CONFIG_MAPS, "a", free, namespace, options=DRY)
        assert await exists(cluster, CONFIG_MAPS, "a", namespace)
        await cluster.patch(CONFIG_MAPS, "a", free, namespace)

    @pytest.mark.parametrize(("resource", "document", "path"), UNKNOWN, ids=[path for _, _, path in UNKNOWN])
    async def test_strict_validation_refuses_unknown_fields(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document, path: str
    ) -> None:
        with pytest.raises(BadRequest) as refused:
            await cluster.create(resource, document, namespace, options=STRICT)
        assert f'strict decoding error: unknown field "{path}"' in str(refused.value)
        assert not await exists(cluster, resource, "u", namespace)

    @pytest.mark.parametrize(("resource", "document", "path"), UNKNOWN, ids=[path for _, _, path in UNKNOWN])
    async def test_a_warning_names_each_unknown_field(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document, path: str
    ) -> None:
        said: list[str] = []
        options = WriteOptions(field_validation=FieldValidation.WARN, warn=said.append)
        await cluster.create(resource, document, namespace, options=options)
        assert f'unknown field "{path}"' in said
        assert await exists(cluster, resource, "u", namespace)

    @pytest.mark.parametrize(("resource", "document", "path"), UNKNOWN, ids=[path for _, _, path in UNKNOWN])
    async def test_unknown_fields_may_be_ignored(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document, path: str
    ) -> None:
        said: list[str] = []
        options = WriteOptions(field_validation=FieldValidation.IGNORE, warn=said.append)
        await cluster.create(resource, document, namespace, options=options)
        assert not [text for text in said if path in text]

    async def test_strict_validation_of_a_patch_points_at_the_patch(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        for patch in (MergePatch({"dataa": {"k": "v"}}), StrategicMergePatch({"dataa": {"k": "v"}})):
            with pytest.raises(InvalidObject) as refused:
                await cluster.patch(CONFIG_MAPS, "a", patch, namespace, options=STRICT)
            assert [cause.field for cause in refused.value.causes] == ["patch"]
            assert 'strict decoding error: unknown field "dataa"' in str(refused.value)

    async def test_the_field_manager_is_recorded(self, cluster: Cluster, namespace: str) -> None:
        options = WriteOptions(field_manager="tester")
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace, options=options)
        assert [entry["manager"] for entry in created["metadata"]["managedFields"]] == ["tester"]
