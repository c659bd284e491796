from typing import Any

import pytest

from devlet.objects.validation import Rules, validate_create, validate_update


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
def test_what_could_not_be_served_is_refused(spec: dict[str, Any], field: str) -> None:
    assert field in fields(definition(**spec))


def test_a_definition_without_a_spec_is_refused() -> None:
    assert fields({**definition(), "spec": None}) == {"spec"}


def test_what_objects_are_stored_under_cannot_change() -> None:
    changed = validate_update(definition(scope="Cluster"), definition(), Rules())
    assert [cause.field for cause in changed] == ["spec.scope"]
