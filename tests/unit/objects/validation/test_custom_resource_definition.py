from typing import Any

import pytest

from devlet.objects.kind_rules import Rules, validate_create, validate_update
from devlet.objects.validation.custom_resource_definition import SCHEMA_OBJECTS_MAX
from devlet.objects.validation.field_errors import too_many


def definition(**spec: Any) -> dict[str, Any]:
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
            **spec,
        },
    }


def fields(document: dict[str, Any]) -> set[str]:
    return {cause.field for cause in validate_create(document, Rules())}


def test_a_definition_may_be_small() -> None:
    assert fields(definition()) == set()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"group": ""}, "spec.group"),
        ({"group": 7}, "spec.group"),
        ({"group": "resource.k8s.io"}, "spec.group"),
        ({"group": "Bad_Group"}, "spec.group"),
        ({"scope": "Galaxy"}, "spec.scope"),
        ({"names": None}, "spec.names"),
        ({"names": {"plural": "widgets"}}, "spec.names.kind"),
        ({"names": {"plural": "widgets", "kind": "Widget", "shortNames": [1]}}, "spec.names.shortNames"),
        ({"names": {"plural": "other", "kind": "Widget"}}, "metadata.name"),
        ({"versions": []}, "spec.versions"),
        ({"versions": [{"served": True}]}, "spec.versions"),
        ({"versions": [{"name": "v1", "served": True}]}, "spec.versions"),
        ({"versions": [{"name": "v1", "storage": True}]}, "spec.versions"),
        ({"versions": [{"name": "V1!", "served": True, "storage": True}]}, "spec.versions[0].name"),
    ],
)
def test_a_definition_that_could_not_be_served_is_rejected(spec: dict[str, Any], field: str) -> None:
    assert field in fields(definition(**spec))


def test_the_schemas_of_all_versions_are_limited_together() -> None:
    def versions(properties: int) -> list[dict[str, Any]]:
        schema = {"openAPIV3Schema": {"type": "object", "properties": {f"p{i}": {} for i in range(properties)}}}
        served = {"served": True, "schema": schema}
        return [{"name": "v1", "storage": True, **served}, {"name": "v2", "storage": False, **served}]

    half = SCHEMA_OBJECTS_MAX // 2 - 3  # the schema, openAPIV3Schema and its properties are objects as well
    assert validate_create(definition(versions=versions(half)), Rules()) == []
    causes = validate_create(definition(versions=versions(half + 1)), Rules())
    assert causes == [too_many("spec.versions[*].schema", SCHEMA_OBJECTS_MAX + 2, SCHEMA_OBJECTS_MAX)]


def test_a_definition_without_a_spec_is_refused() -> None:
    assert fields({**definition(), "spec": None}) == {"spec"}


def test_what_objects_are_stored_under_cannot_change() -> None:
    changed = validate_update(definition(scope="Cluster"), definition(), Rules())
    assert [cause.field for cause in changed] == ["spec.scope"]
