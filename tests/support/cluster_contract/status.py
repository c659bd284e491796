"""Spec and status are written through different endpoints, and each leaves the other part alone."""

import pytest

from devlet.cluster.client import Cluster, JsonPatch, MergePatch
from devlet.errors import Conflict, InvalidObject, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.specimens import allocation, unique

CONDITION = {"type": "Ready", "status": "True", "reason": "Tested"}
WITHOUT_STATUS: list[tuple[Resource, Document]] = [
    (CONFIG_MAPS, specimens.config_map("a")),
    (LEASES, specimens.lease("a")),
    (RESOURCE_CLAIM_TEMPLATES, specimens.claim_template("a")),
    (RESOURCE_SLICES, specimens.resource_slice(unique("slice"))),
    (DEVICE_CLASSES, specimens.device_class(unique("class"))),
]


def causes(error: InvalidObject) -> set[str]:
    return {cause.field for cause in error.causes}


@pytest.mark.spec("KA-3.3")
class StatusContract(Contract):
    async def test_a_created_pod_is_pending_whatever_it_says(self, cluster: Cluster, namespace: str) -> None:
        document = {**specimens.pod("p"), "status": {"phase": "Running", "podIP": "10.0.0.1"}}
        status = (await cluster.create(PODS, document, namespace))["status"]
        assert (status["phase"], status["qosClass"]) == ("Pending", "BestEffort")
        assert "podIP" not in status

    async def test_a_created_claim_has_no_allocation_whatever_it_says(self, cluster: Cluster, namespace: str) -> None:
        document = {**specimens.claim("c"), "status": {"allocation": allocation("d0")}}
        assert (await cluster.create(RESOURCE_CLAIMS, document, namespace))["status"] == {}

    async def test_a_created_node_keeps_its_status(self, cluster: Cluster) -> None:
        document = specimens.node(status={"capacity": {"cpu": "4"}, "conditions": [CONDITION]})
        created = await cluster.create(NODES, document)
        assert created["status"]["capacity"] == {"cpu": "4"}
        assert created["status"]["conditions"][0]["type"] == "Ready"

    async def test_a_created_namespace_is_active_whatever_it_says(self, cluster: Cluster) -> None:
        document = {**specimens.named(unique("ns")), "status": {"phase": "Terminating"}}
        assert (await cluster.create(NAMESPACES, document))["status"]["phase"] == "Active"

    async def test_the_main_door_leaves_status_alone(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(PODS, specimens.pod("p"), namespace)
        running = MergePatch({"status": {"phase": "Running"}})
        unchanged = await cluster.patch(PODS, "p", running, namespace)
        assert unchanged == created
        updated = await cluster.update(
            PODS, {**created, "status": {}, "metadata": {**created["metadata"], "labels": {"a": "b"}}}
        )
        assert (updated["status"], updated["metadata"]["labels"]) == (created["status"], {"a": "b"})

    async def test_a_nodes_status_is_kept_by_the_main_door_too(self, cluster: Cluster) -> None:
        created = await cluster.create(NODES, specimens.node(status={"capacity": {"cpu": "4"}}))
        updated = await cluster.update(NODES, {**created, "spec": {"unschedulable": True}, "status": {}})
        assert updated["status"] == created["status"]
        assert updated["spec"]["unschedulable"] is True

    async def test_the_status_door_leaves_spec_alone(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(PODS, specimens.pod("p"), namespace)
        document = {**created, "spec": {"containers": []}, "status": {"phase": "Running"}}
        updated = await cluster.update(PODS, document, subresource="status")
        assert (updated["spec"], updated["status"]["phase"]) == (created["spec"], "Running")
        assert await cluster.get(PODS, "p", namespace) == updated

    async def test_a_pods_status_door_takes_labels_but_no_owners(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
        metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": [owner]}
        patched = await cluster.patch(PODS, "p", MergePatch({"metadata": metadata}), namespace, subresource="status")
        assert (patched["metadata"]["labels"], patched["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})
        assert "ownerReferences" not in patched["metadata"]

    async def test_a_claims_status_door_drops_labels(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(RESOURCE_CLAIMS, specimens.claim("c"), namespace)
        patch = MergePatch({"metadata": {"labels": {"a": "b"}}, "status": {"allocation": allocation("d0")}})
        patched = await cluster.patch(RESOURCE_CLAIMS, "c", patch, namespace, subresource="status")
        assert "labels" not in patched["metadata"]
        assert patched["status"]["allocation"]["devices"]["results"][0]["device"] == "d0"
        assert patched["spec"] == created["spec"]

    async def test_a_nodes_status_door_leaves_spec_alone(self, cluster: Cluster) -> None:
        created = await cluster.create(NODES, specimens.node())
        document = {**created, "spec": {"unschedulable": True}, "status": {"conditions": [CONDITION]}}
        updated = await cluster.update(NODES, document, subresource="status")
        assert not updated["spec"].get("unschedulable")
        assert updated["status"]["conditions"][0]["reason"] == "Tested"

    @pytest.mark.parametrize(("resource", "document"), WITHOUT_STATUS, ids=lambda value: getattr(value, "plural", ""))
    async def test_some_kinds_have_no_status_door(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document
    ) -> None:
        where = namespace if resource.namespaced else ""
        created = await cluster.create(resource, document, where)
        with pytest.raises(NotFound):
            await cluster.update(resource, created, subresource="status")
        with pytest.raises(NotFound):
            patch = MergePatch({"metadata": {"labels": {"a": "b"}}})
            await cluster.patch(resource, created["metadata"]["name"], patch, where, subresource="status")

    async def test_the_status_of_an_absent_object_is_not_found(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(NotFound):
            await cluster.patch(PODS, "absent", MergePatch({"status": {}}), namespace, subresource="status")
        with pytest.raises(NotFound):
            await cluster.update(PODS, specimens.pod("absent", namespace=namespace), subresource="status")

    async def test_the_status_door_minds_versions(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(PODS, specimens.pod("p"), namespace)
        await cluster.patch(PODS, "p", MergePatch({"metadata": {"labels": {"a": "b"}}}), namespace)
        with pytest.raises(Conflict):
            await cluster.update(PODS, {**created, "status": {"phase": "Running"}}, subresource="status")

    async def test_a_json_patch_works_on_status(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        patch = JsonPatch([{"op": "replace", "path": "/status/phase", "value": "Running"}])
        patched = await cluster.patch(PODS, "p", patch, namespace, subresource="status")
        assert patched["status"]["phase"] == "Running"

    async def test_a_claim_is_allocated_once_then_reserved_then_freed(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(RESOURCE_CLAIMS, specimens.claim("c"), namespace)
        consumer = {"resource": "pods", "name": "p", "uid": "1"}

        async def set_status(status: Document) -> Document:
            patch = MergePatch({"status": status})
            return await cluster.patch(RESOURCE_CLAIMS, "c", patch, namespace, subresource="status")

        with pytest.raises(InvalidObject):
            await set_status({"reservedFor": [consumer]})
        await set_status({"allocation": allocation("d0"), "reservedFor": [consumer]})
        with pytest.raises(InvalidObject) as refused:
            await set_status({"allocation": allocation("d1")})
        assert any(field.startswith("status.allocation") for field in causes(refused.value))
        assert (await set_status({"allocation": None, "reservedFor": None}))["status"] == {}

    async def test_specs_that_are_immutable_stay(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(RESOURCE_CLAIMS, specimens.claim("c"), namespace)
        with pytest.raises(InvalidObject) as refused:
            await cluster.patch(RESOURCE_CLAIMS, "c", MergePatch({"spec": {"devices": {"requests": []}}}), namespace)
        assert causes(refused.value) == {"spec"}
        made = await cluster.create(RESOURCE_SLICES, specimens.resource_slice())
        with pytest.raises(InvalidObject):
            await cluster.patch(RESOURCE_SLICES, made["metadata"]["name"], MergePatch({"spec": {"nodeName": "other"}}))
        await cluster.create(PODS, specimens.pod("p"), namespace)
        with pytest.raises(InvalidObject, match="pod updates may not change fields other than"):
            await cluster.patch(PODS, "p", MergePatch({"spec": {"schedulerName": "x"}}), namespace)
