"""The operations of resources in OpenAPI."""

import pytest

from devlet.objects.kinds import BUILT_IN, Catalogue, Kind, Resource
from devlet.serve.kube_api import discovery
from devlet.serve.kube_api.openapi_operations import Operation, kind_component, operations, path_parameters

CATALOGUE = Catalogue(BUILT_IN)
PODS = CATALOGUE.resource("v1", "pods")
META = "io.k8s.apimachinery.pkg.apis.meta.v1"

pytestmark = pytest.mark.spec("KA-1.5")


def by_id(resource: Resource) -> dict[str, Operation]:
    return {operation.id: operation for operation in operations(resource)}


@pytest.mark.spec("KA-10.19")
def test_every_kind_has_a_get_and_a_patch_that_can_validate() -> None:
    for kind in BUILT_IN:
        for api_version in kind.api_versions:
            resource = Resource(kind, api_version)
            own = [found for found in operations(resource) if found.path.endswith(f"/{kind.plural}/{{name}}")]
            actions = {found.action: {parameter.name for parameter in found.parameters} for found in own}
            assert {"dryRun", "fieldManager", "fieldValidation", "force"} == actions["patch"]
            assert "get" in actions
            assert {found.kind for found in own} == {kind.kind}


def test_a_namespaced_resource_is_listed_in_one_namespace_and_in_all() -> None:
    lists = [found for found in operations(PODS) if found.action == "list"]
    assert [found.path for found in lists] == ["/api/v1/pods", "/api/v1/namespaces/{namespace}/pods"]
    assert [found.id for found in lists] == ["listCoreV1PodForAllNamespaces", "listCoreV1NamespacedPod"]


def test_bodies_and_answers_are_named() -> None:
    found = by_id(PODS)
    create, patch = found["createCoreV1NamespacedPod"], found["patchCoreV1NamespacedPod"]
    assert (create.body, create.answer) == ("io.k8s.api.core.v1.Pod",) * 2
    assert (patch.body, patch.answer) == (f"{META}.Patch", "io.k8s.api.core.v1.Pod")
    assert found["listCoreV1NamespacedPod"].answer == "io.k8s.api.core.v1.PodList"
    assert found["deleteCoreV1CollectionNamespacedPod"].answer == f"{META}.Status"


def test_subresources_have_their_own_kinds() -> None:
    eviction = by_id(PODS)["createCoreV1NamespacedPodEviction"]
    assert (eviction.api_version, eviction.kind) == ("policy/v1", "Eviction")
    assert eviction.body == "io.k8s.api.policy.v1.Eviction"


def test_the_operations_are_the_verbs_of_discovery() -> None:
    namespaces = [found.action for found in operations(CATALOGUE.resource("v1", "namespaces"))]
    assert "deletecollection" not in namespaces
    (review,) = discovery.served(CATALOGUE, "authentication.k8s.io/v1")[1:]
    assert [found.method for found in operations(review)] == ["post"]


def test_a_kind_that_is_not_built_in_is_named_by_its_group() -> None:
    assert kind_component("stable.example.com/v1", "Robot") == "com.example.stable.v1.Robot"
    robots = Resource(Kind("Robot", "robots", ("stable.example.com/v1",)), "stable.example.com/v1")
    assert "createStableExampleComV1NamespacedRobot" in by_id(robots)


def test_parts_of_the_path_are_parameters() -> None:
    found = path_parameters("/api/v1/namespaces/{namespace}/pods/{name}")
    assert [(parameter.name, parameter.in_path) for parameter in found] == [
        ("name", True),
        ("namespace", True),
        ("pretty", False),
    ]
