"""Every verb once, and every "no" that the port promises."""

from typing import Any

import pytest

from devlet.cluster.client import Cluster, MergePatch
from devlet.errors import AlreadyExists, BadRequest, InvalidObject, NotFound, UnsupportedPatch
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
from tests.support.cluster_contract.reading import exists, names

KINDS: list[tuple[Resource, Document]] = [
    (CONFIG_MAPS, specimens.config_map("one")),
    (SECRETS, specimens.named("one")),
    (SERVICE_ACCOUNTS, specimens.named("one")),
    (PODS, specimens.pod("one")),
    (LEASES, specimens.lease("one")),
    (RESOURCE_CLAIMS, specimens.claim("one")),
    (RESOURCE_CLAIM_TEMPLATES, specimens.claim_template("one")),
    (NODES, specimens.node(specimens.unique("node"))),
    (DEVICE_CLASSES, specimens.device_class(specimens.unique("class"))),
    (RESOURCE_SLICES, specimens.resource_slice(specimens.unique("slice"))),
]
each_kind = pytest.mark.parametrize(("resource", "document"), KINDS, ids=lambda value: getattr(value, "plural", ""))


class VerbContract(Contract):
    @each_kind
    async def test_an_object_lives_from_create_to_delete(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document
    ) -> None:
        name, where = document["metadata"]["name"], namespace if resource.namespaced else ""
        created = await cluster.create(resource, document, where)
        assert (created["kind"], created["apiVersion"]) == (resource.kind.kind, resource.api_version)
        assert await cluster.get(resource, name, where) == created
        assert name in names(await cluster.list(resource, where))

        labelled = {**created, "metadata": {**created["metadata"], "labels": {"a": "b"}}}
        updated = await cluster.update(resource, labelled)
        assert updated["metadata"]["labels"] == {"a": "b"}
        patched = await cluster.patch(resource, name, MergePatch({"metadata": {"labels": {"c": "d"}}}), where)
        assert patched["metadata"]["labels"] == {"a": "b", "c": "d"}
        assert await cluster.get(resource, name, where) == patched

        await cluster.delete(resource, name, where)
        assert not await exists(cluster, resource, name, where)
        assert name not in names(await cluster.list(resource, where))

    async def test_an_event_lives_from_create_to_delete(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(EVENTS, specimens.event(namespace, "e"), namespace)
        patched = await cluster.patch(EVENTS, "e", MergePatch({"count": 2}), namespace)
        assert (created["count"], patched["count"]) == (1, 2)
        await cluster.delete(EVENTS, "e", namespace)
        assert not await exists(cluster, EVENTS, "e", namespace)

    async def test_a_namespace_is_active_and_labelled_with_its_name(self, cluster: Cluster, namespace: str) -> None:
        found = await cluster.get(NAMESPACES, namespace)
        assert found["status"]["phase"] == "Active"
        assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace
        assert found["spec"]["finalizers"] == ["kubernetes"]

    async def test_the_namespaces_of_the_system_are_there(self, cluster: Cluster) -> None:
        found = set(names(await cluster.list(NAMESPACES)))
        assert found >= {"kube-node-lease", "kube-public", "kube-system"}
        assert await exists(cluster, NAMESPACES, "default")

    @each_kind
    async def test_an_absent_object_is_not_found_by_any_verb(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document
    ) -> None:
        where, name = namespace if resource.namespaced else "", "absent"
        with pytest.raises(NotFound) as got:
            await cluster.get(resource, name, where)
        assert str(got.value) == f'{resource.name} "absent" not found'
        with pytest.raises(NotFound):
            await cluster.patch(resource, name, MergePatch({"metadata": {"labels": {"a": "b"}}}), where)
        with pytest.raises(NotFound):
            await cluster.delete(resource, name, where)
        if not resource.kind.update_creates:
            absent = {**document, "metadata": {"name": name, **({"namespace": where} if where else {})}}
            with pytest.raises(NotFound):
                await cluster.update(resource, absent)

    @each_kind
    async def test_a_name_is_given_once(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document
    ) -> None:
        name, where = specimens.unique("once"), namespace if resource.namespaced else ""
        document = {**document, "metadata": {"name": name}}
        first = await cluster.create(resource, document, where)
        with pytest.raises(AlreadyExists) as refused:
            await cluster.create(resource, document, where)
        assert str(refused.value) == f'{resource.name} "{name}" already exists'
        assert await cluster.get(resource, name, where) == first

    async def test_the_same_name_in_another_namespace_is_another_object(self, cluster: Cluster, namespace: str) -> None:
        other = specimens.unique("ns")
        await cluster.create(NAMESPACES, specimens.named(other))
        here = await cluster.create(CONFIG_MAPS, specimens.config_map("same"), namespace)
        there = await cluster.create(CONFIG_MAPS, specimens.config_map("same", data={}), other)
        assert here["metadata"]["uid"] != there["metadata"]["uid"]
        await cluster.delete(CONFIG_MAPS, "same", namespace)
        assert await exists(cluster, CONFIG_MAPS, "same", other)

    async def test_what_was_answered_is_ours_to_change(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, specimens.config_map("mine"), namespace)
        created["data"]["k"] = "changed by the caller"
        got = await cluster.get(CONFIG_MAPS, "mine", namespace)
        assert got["data"] == {"k": "v"}
        got["data"]["k"] = "changed by the caller"
        assert (await cluster.get(CONFIG_MAPS, "mine", namespace))["data"] == {"k": "v"}

    async def test_what_we_hand_in_stays_as_it_is(self, cluster: Cluster, namespace: str) -> None:
        document = specimens.pod("ours")
        await cluster.create(PODS, document, namespace)
        assert document == specimens.pod("ours")

    async def test_apiversion_and_kind_may_be_left_out_or_given(self, cluster: Cluster, namespace: str) -> None:
        typed = {"apiVersion": "v1", "kind": "ConfigMap", **specimens.config_map("typed")}
        assert (await cluster.create(CONFIG_MAPS, typed, namespace))["kind"] == "ConfigMap"
        assert (await cluster.create(CONFIG_MAPS, specimens.config_map(), namespace))["apiVersion"] == "v1"

    @pytest.mark.parametrize(
        "wrong", [{"kind": "Secret"}, {"apiVersion": "v2"}, {"apiVersion": "apps/v1", "kind": "ConfigMap"}]
    )
    async def test_an_object_of_another_kind_is_a_bad_request(
        self, cluster: Cluster, namespace: str, wrong: Document
    ) -> None:
        with pytest.raises(BadRequest):
            await cluster.create(CONFIG_MAPS, {**specimens.config_map(), **wrong}, namespace)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"data": {"k": 1}},
            {"data": "text"},
            {"metadata": []},
            {"metadata": {"name": 1}},
            {"metadata": {"labels": []}},
            {"metadata": {"name": "x", "finalizers": "f"}},
        ],
    )
    async def test_a_value_of_another_json_type_is_a_bad_request(
        self, cluster: Cluster, namespace: str, wrong: dict[str, Any]
    ) -> None:
        with pytest.raises(BadRequest):
            await cluster.create(CONFIG_MAPS, {**specimens.config_map(), **wrong}, namespace)

    async def test_a_pod_without_containers_names_the_field(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(PODS, {**specimens.named("empty"), "spec": {"containers": []}}, namespace)
        cause = refused.value.causes[0]
        assert (refused.value.kind, refused.value.name) == ("Pod", "empty")
        assert (cause.reason, cause.field) == ("FieldValueRequired", "spec.containers")

    async def test_a_pod_without_a_spec_is_invalid(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(PODS, specimens.named("empty"), namespace)
        assert "spec.containers" in {cause.field for cause in refused.value.causes}

    async def test_unicode_survives(self, cluster: Cluster, namespace: str) -> None:
        data = {"k": 'grüße 🎉 \u2028 \\ " \x7f'}
        await cluster.create(CONFIG_MAPS, specimens.config_map("text", data=data), namespace)
        assert (await cluster.get(CONFIG_MAPS, "text", namespace))["data"] == data

    async def test_a_patch_must_leave_an_object(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, specimens.config_map("whole"), namespace)
        with pytest.raises((InvalidObject, BadRequest, UnsupportedPatch)):
            await cluster.patch(CONFIG_MAPS, "whole", MergePatch({"metadata": "text"}), namespace)
        assert await exists(cluster, CONFIG_MAPS, "whole", namespace)
