"""JSON patch, merge patch and strategic merge patch, through the port."""

from typing import Any

import pytest

from devlet.cluster.client import Cluster, JsonPatch, MergePatch, Patch, StrategicMergePatch
from devlet.errors import BadRequest, InvalidInput, InvalidObject
from devlet.objects.kinds import CONFIG_MAPS, NODES, PODS, RESOURCE_CLAIMS
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.specimens import allocation, config_map


@pytest.mark.spec("KA-3.7")
class PatchContract(Contract):
    async def test_a_json_patch_does_its_operations_in_order(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", data={"k": "v", "m": "1"}), namespace)
        operations: list[Any] = [
            {"op": "test", "path": "/data/k", "value": "v"},
            {"op": "add", "path": "/data/n", "value": "2"},
            {"op": "copy", "from": "/data/n", "path": "/data/o"},
            {"op": "move", "from": "/data/m", "path": "/data/p"},
            {"op": "replace", "path": "/data/k", "value": "w"},
            {"op": "remove", "path": "/data/n"},
        ]
        patched = await cluster.patch(CONFIG_MAPS, "a", JsonPatch(operations), namespace)
        assert patched["data"] == {"k": "w", "o": "2", "p": "1"}

    @pytest.mark.parametrize(
        "operation",
        [
            {"op": "test", "path": "/data/k", "value": "no"},
            {"op": "remove", "path": "/data/none"},
            {"op": "replace", "path": "/none/none", "value": "x"},
            {"op": "move", "from": "/data/none", "path": "/data/x"},
        ],
        ids=lambda operation: operation["op"],
    )
    async def test_an_operation_that_fails_changes_nothing(
        self, cluster: Cluster, namespace: str, operation: dict[str, Any]
    ) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        first = {"op": "add", "path": "/data/first", "value": "x"}
        with pytest.raises(InvalidObject):
            await cluster.patch(CONFIG_MAPS, "a", JsonPatch([first, operation]), namespace)
        assert await cluster.get(CONFIG_MAPS, "a", namespace) == created

    @pytest.mark.parametrize(
        "operations",
        [
            ["text"],
            [{"op": "none", "path": "/data"}],
            [{"op": "add", "value": 1}],
            [{"op": "replace", "path": "", "value": []}],
            [{"op": "replace", "path": "", "value": None}],
            [{"op": "remove", "path": ""}],
            [{"op": "remove", "path": "/metadata"}],
            [{"op": "replace", "path": "/metadata", "value": None}],
            [{"op": "replace", "path": "/metadata", "value": "text"}],
            [{"op": "replace", "path": "/kind", "value": "Secret"}],
            [{"op": "replace", "path": "/apiVersion", "value": 1}],
            [{"op": "add", "path": "/data/k", "value": {"deep": 1}}],
        ],
        ids=str,
    )
    async def test_a_nonsensical_json_patch_is_refused(
        self, cluster: Cluster, namespace: str, operations: list[Any]
    ) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        with pytest.raises(InvalidInput):
            await cluster.patch(CONFIG_MAPS, "a", JsonPatch(operations), namespace)
        assert await cluster.get(CONFIG_MAPS, "a", namespace) == created

    async def test_a_merge_patch_merges_maps_and_replaces_lists(self, cluster: Cluster, namespace: str) -> None:
        finalizers = ["example.com/a", "example.com/b"]
        await cluster.create(CONFIG_MAPS, config_map("a", data={"k": "v", "m": "1"}, finalizers=finalizers), namespace)
        patch = MergePatch({"data": {"k": None, "n": "2"}, "metadata": {"finalizers": ["example.com/c"]}})
        patched = await cluster.patch(CONFIG_MAPS, "a", patch, namespace)
        assert (patched["data"], patched["metadata"]["finalizers"]) == ({"m": "1", "n": "2"}, ["example.com/c"])
        gone = await cluster.patch(
            CONFIG_MAPS, "a", MergePatch({"data": None, "metadata": {"finalizers": []}}), namespace
        )
        assert not gone.keys() & {"data"}
        assert not gone["metadata"].get("finalizers")

    async def test_a_strategic_patch_merges_lists_by_key(self, cluster: Cluster, namespace: str) -> None:
        env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
        container = {"name": "main", "image": "registry.example.com/app:1", "env": env}
        await cluster.create(PODS, specimens.pod("p", spec={"containers": [container]}), namespace)
        image = {"spec": {"containers": [{"name": "main", "image": "registry.example.com/app:2"}]}}
        patched = await cluster.patch(PODS, "p", StrategicMergePatch(image), namespace)
        assert [c["image"] for c in patched["spec"]["containers"]] == ["registry.example.com/app:2"]
        assert patched["spec"]["containers"][0]["env"] == env

    async def test_a_strategic_patch_merges_conditions_of_status(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        for type_ in ("Ready", "Initialized", "Ready"):
            patch = StrategicMergePatch({"status": {"conditions": [{"type": type_, "status": "True"}]}})
            patched = await cluster.patch(PODS, "p", patch, namespace, subresource="status")
        assert sorted(c["type"] for c in patched["status"]["conditions"]) == ["Initialized", "Ready"]

    async def test_a_strategic_patch_merges_finalizers_and_deletes_from_them(
        self, cluster: Cluster, namespace: str
    ) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", finalizers=["example.com/a"]), namespace)
        more = StrategicMergePatch({"metadata": {"finalizers": ["example.com/b"]}})
        patched = await cluster.patch(CONFIG_MAPS, "a", more, namespace)
        assert sorted(patched["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]
        less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}}
        emptied = await cluster.patch(CONFIG_MAPS, "a", StrategicMergePatch(less), namespace)
        assert not emptied["metadata"].get("finalizers")

    async def test_directives_delete_and_replace(self, cluster: Cluster) -> None:
        conditions = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]
        made = await cluster.create(NODES, specimens.node(status={"conditions": conditions}, labels={"a": "b"}))
        name = made["metadata"]["name"]
        gone = StrategicMergePatch({"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}})
        patched = await cluster.patch(NODES, name, gone, subresource="status")
        assert [c["type"] for c in patched["status"]["conditions"]] == ["DiskPressure"]
        replaced = StrategicMergePatch({"metadata": {"labels": {"$patch": "replace", "c": "d"}}})
        assert (await cluster.patch(NODES, name, replaced))["metadata"]["labels"] == {"c": "d"}

    async def test_reservations_merge_by_uid(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(RESOURCE_CLAIMS, specimens.claim("c"), namespace)
        first = {
            "status": {"allocation": allocation("d0"), "reservedFor": [{"resource": "pods", "name": "a", "uid": "1"}]}
        }
        await cluster.patch(RESOURCE_CLAIMS, "c", MergePatch(first), namespace, subresource="status")
        second = {"status": {"reservedFor": [{"resource": "pods", "name": "b", "uid": "2"}]}}
        patched = await cluster.patch(
            RESOURCE_CLAIMS, "c", StrategicMergePatch(second), namespace, subresource="status"
        )
        assert sorted(consumer["uid"] for consumer in patched["status"]["reservedFor"]) == ["1", "2"]

    @pytest.mark.parametrize(
        "patch",
        [
            MergePatch({"metadata": {"labels": {"a": "not a value!"}}}),
            StrategicMergePatch({"metadata": {"labels": {"a": "not a value!"}}}),
            JsonPatch([{"op": "add", "path": "/metadata/labels", "value": {"a": "not a value!"}}]),
        ],
        ids=lambda patch: type(patch).__name__,
    )
    async def test_the_result_of_a_patch_is_validated(self, cluster: Cluster, namespace: str, patch: Patch) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        with pytest.raises(InvalidObject) as refused:
            await cluster.patch(CONFIG_MAPS, "a", patch, namespace)
        assert {cause.field for cause in refused.value.causes} == {"metadata.labels"}

    async def test_a_patch_with_a_wrong_type_is_refused(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        with pytest.raises((BadRequest, InvalidObject)):
            await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": 1}}), namespace)

    async def test_a_patched_pod_gets_defaults_again(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        patch = MergePatch({"spec": {"terminationGracePeriodSeconds": None}})
        patched = await cluster.patch(PODS, "p", patch, namespace)
        assert patched["spec"]["terminationGracePeriodSeconds"] == 30
