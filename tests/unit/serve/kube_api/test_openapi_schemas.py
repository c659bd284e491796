"""Schemas built from the schema table."""

import pytest

from devlet.objects.schema import messages as schema
from devlet.serve.kube_api.openapi_schemas import (
    PATCH,
    V2,
    V3,
    Dialect,
    component,
    component_name,
    components,
    references,
)

POD = component_name("k8s.io.api.core.v1.Pod")
POD_SPEC = component_name("k8s.io.api.core.v1.PodSpec")

pytestmark = pytest.mark.spec("KA-1.5")


@pytest.mark.parametrize("dialect", [V2, V3], ids=["v2", "v3"])
def test_every_message_has_a_schema_whose_references_lead_somewhere(dialect: Dialect) -> None:
    roots = [component_name(name) for name in schema.kinds().values()]
    found = components(dialect, roots)
    assert set(roots) <= found.keys()
    assert {name for document in found.values() for name in references(dialect, document)} <= found.keys()
    assert len(found) > 400


def test_the_schema_of_a_kind_names_group_version_and_kind() -> None:
    document, below = component(V3, POD)
    assert document["x-kubernetes-group-version-kind"] == [{"group": "", "version": "v1", "kind": "Pod"}]
    assert {"apiVersion", "kind", "metadata", "spec", "status"} == document["properties"].keys()
    assert POD_SPEC in below


def test_the_schema_of_another_message_names_no_kind() -> None:
    document, _ = component(V3, POD_SPEC)
    assert "x-kubernetes-group-version-kind" not in document
    assert "kind" not in document["properties"]
    assert document["required"] == ["containers"]


def test_the_schema_of_a_list_has_its_merge_keys() -> None:
    claims = component(V3, POD_SPEC)[0]["properties"]["resourceClaims"]
    claims = {key: value for key, value in claims.items() if key != "description"}
    assert claims == {
        "type": "array",
        "items": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodResourceClaim"}]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge,retainKeys",
    }


def test_references_of_version_two_are_not_wrapped() -> None:
    claims = component(V2, POD_SPEC)[0]["properties"]["resourceClaims"]
    assert claims["items"] == {"$ref": "#/definitions/io.k8s.api.core.v1.PodResourceClaim"}


@pytest.mark.parametrize(
    ("message", "in_v2", "in_v3"),
    [
        ("api.resource.Quantity", {"type": "string"}, {"oneOf": [{"type": "string"}, {"type": "number"}]}),
        (
            "util.intstr.IntOrString",
            {"type": "string", "format": "int-or-string"},
            {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        ),
        ("apis.meta.v1.Time", *[{"type": "string", "format": "date-time"}] * 2),
        ("runtime.RawExtension", *[{"type": "object"}] * 2),
    ],
)
def test_some_types_have_their_own_json_form(message: str, in_v2: object, in_v3: object) -> None:
    name = component_name(f"k8s.io.apimachinery.pkg.{message}")
    assert component(V2, name)[0] == in_v2
    assert component(V3, name)[0] == in_v3


def test_maps_and_numbers_have_their_types() -> None:
    metadata = component(V3, component_name("k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta"))[0]["properties"]
    assert metadata["labels"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert metadata["generation"] == {"type": "integer", "format": "int64"}


def test_a_patch_is_any_object() -> None:
    assert component(V3, PATCH)[0]["type"] == "object"
