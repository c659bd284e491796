"""Server-side apply: who owns which field, and what happens when two want the same one."""

from typing import Any

import pytest

from devlet.cluster.client import ApplyPatch, Cluster, MergePatch, WriteOptions
from devlet.errors import BadRequest, Conflict, InvalidObject, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, PODS
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import exists
from tests.support.cluster_contract.specimens import config_map


def configuration(data: dict[str, str] | None, **metadata: Any) -> Document:
    members = {} if data is None else {"data": data}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, **members}


@pytest.mark.spec("KA-3.8")
class OwnershipContract(Contract):
    async def apply(
        self, cluster: Cluster, namespace: str, config: Document, manager: str = "m1", *, force: bool = False
    ) -> Document:
        options = WriteOptions(field_manager=manager)
        return await cluster.patch(CONFIG_MAPS, "a", ApplyPatch(config, force), namespace, options=options)

    async def test_apply_creates_what_is_absent(self, cluster: Cluster, namespace: str) -> None:
        applied = await self.apply(cluster, namespace, configuration({"k": "v"}))
        assert await cluster.get(CONFIG_MAPS, "a", namespace) == applied
        entries = applied["metadata"]["managedFields"]
        assert [(entry["manager"], entry["operation"]) for entry in entries] == [("m1", "Apply")]
        assert entries[0]["fieldsV1"] == {"f:data": {"f:k": {}}}

    async def test_the_same_configuration_again_is_no_change(self, cluster: Cluster, namespace: str) -> None:
        first = await self.apply(cluster, namespace, configuration({"k": "v"}))
        assert await self.apply(cluster, namespace, configuration({"k": "v"})) == first

    async def test_what_a_manager_leaves_out_goes(self, cluster: Cluster, namespace: str) -> None:
        await self.apply(cluster, namespace, configuration({"k": "v", "n": "1"}, labels={"a": "b"}))
        applied = await self.apply(cluster, namespace, configuration({"k": "v"}))
        assert applied["data"] == {"k": "v"}
        assert not applied["metadata"].get("labels")

    async def test_what_others_own_stays(self, cluster: Cluster, namespace: str) -> None:
        await self.apply(cluster, namespace, configuration({"k": "v", "shared": "1"}))
        await self.apply(cluster, namespace, configuration({"n": "1", "shared": "1"}), "m2")
        applied = await self.apply(cluster, namespace, configuration({}))
        assert applied["data"] == {"n": "1", "shared": "1"}

    async def test_another_value_for_anothers_field_is_a_conflict(self, cluster: Cluster, namespace: str) -> None:
        await self.apply(cluster, namespace, configuration({"a": "1"}))
        with pytest.raises(Conflict) as refused:
            await self.apply(cluster, namespace, configuration({"a": "2"}), "m2")
        causes = [(cause.reason, cause.message, cause.field) for cause in refused.value.causes]
        assert causes == [("FieldManagerConflict", 'conflict with "m1"', ".data.a")]
        assert str(refused.value) == 'Apply failed with 1 conflict: conflict with "m1": .data.a'

    async def test_force_takes_the_field(self, cluster: Cluster, namespace: str) -> None:
        await self.apply(cluster, namespace, configuration({"a": "1"}))
        applied = await self.apply(cluster, namespace, configuration({"a": "2"}), "m2", force=True)
        assert applied["data"] == {"a": "2"}
        with pytest.raises(Conflict):
            await self.apply(cluster, namespace, configuration({"a": "1"}))

    async def test_an_update_takes_the_fields_it_changes(self, cluster: Cluster, namespace: str) -> None:
        await self.apply(cluster, namespace, configuration({"a": "1"}))
        options = WriteOptions(field_manager="editor")
        await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"a": "2"}}), namespace, options=options)
        with pytest.raises(Conflict) as refused:
            await self.apply(cluster, namespace, configuration({"a": "1"}))
        assert [cause.message for cause in refused.value.causes] == ['conflict with "editor" using v1']

    async def test_a_manager_is_required(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(InvalidObject, match="is required for apply patch"):
            await self.apply(cluster, namespace, configuration({}), "")

    @pytest.mark.parametrize("missing", ["apiVersion", "kind"])
    async def test_a_configuration_says_what_it_is(self, cluster: Cluster, namespace: str, missing: str) -> None:
        config = configuration({})
        del config[missing]
        with pytest.raises(BadRequest):
            await self.apply(cluster, namespace, config)

    async def test_a_configuration_has_no_managedfields(self, cluster: Cluster, namespace: str) -> None:
        entry = {"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
        with pytest.raises(BadRequest):
            await self.apply(cluster, namespace, configuration({}, managedFields=[entry]))

    async def test_a_configuration_for_another_name_is_refused(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(BadRequest):
            await self.apply(cluster, namespace, {**configuration({}), "metadata": {"name": "b"}})

    async def test_an_unknown_field_is_refused(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(self.bad_request):
            await self.apply(cluster, namespace, {**configuration({}), "dataa": {}})
        assert not await exists(cluster, CONFIG_MAPS, "a", namespace)

    async def test_a_version_in_the_configuration_is_checked(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        current = created["metadata"]["resourceVersion"]
        applied = await self.apply(cluster, namespace, configuration({"n": "1"}, resourceVersion=current))
        assert applied["data"] == {"k": "v", "n": "1"}
        with pytest.raises(Conflict):
            await self.apply(cluster, namespace, configuration({"n": "2"}, resourceVersion=current))

    async def test_lists_with_keys_merge(self, cluster: Cluster, namespace: str) -> None:
        entries = [{"name": "one", "resourceClaimName": "c1"}, {"name": "two", "resourceClaimName": "c2"}]
        await cluster.create(PODS, specimens.pod("p", spec={"resourceClaims": entries}), namespace)
        for i, name in enumerate(("one", "two")):
            status = {"resourceClaimStatuses": [{"name": name, "resourceClaimName": f"made-{i}"}]}
            config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": status}
            options = WriteOptions(field_manager=f"controller-{i}")
            applied = await cluster.patch(
                PODS, "p", ApplyPatch(config, force=True), namespace, subresource="status", options=options
            )
        made = [entry["resourceClaimName"] for entry in applied["status"]["resourceClaimStatuses"]]
        assert sorted(made) == ["made-0", "made-1"]
        assert applied["status"]["phase"] == "Pending"

    async def test_the_status_of_an_absent_object_is_not_created(self, cluster: Cluster, namespace: str) -> None:
        config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}}
        options = WriteOptions(field_manager="m")
        with pytest.raises(NotFound):
            await cluster.patch(PODS, "p", ApplyPatch(config), namespace, subresource="status", options=options)
