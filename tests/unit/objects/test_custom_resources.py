from datetime import UTC, datetime
from typing import Any

from devlet.objects.custom_resources import established, kind_of, version_of
from devlet.objects.kinds import BUILT_IN, Catalogue

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions), **spec},
    }


V1 = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
V2 = {"name": "v2", "served": True}
V3 = {"name": "v3", "served": False}


def test_a_definition_is_a_kind_with_the_stored_version_first() -> None:
    kind = kind_of(definition(V2, V3, V1))
    assert kind.api_versions == ("example.com/v1", "example.com/v2")
    assert (kind.storage_version, kind.key) == ("example.com/v1", "widgets.example.com")
    assert (kind.namespaced, kind.short_names, kind.has_status) == (True, ("wd",), True)
    catalogue = Catalogue(BUILT_IN)
    catalogue.add(kind)
    assert catalogue.of_kind("example.com/v2", "Widget").name == "widgets.example.com"


def test_an_established_definition_says_what_was_accepted() -> None:
    crd = definition(V1)
    status = established(crd, NOW)
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]
    assert (status["storedVersions"], status["acceptedNames"]["listKind"]) == (["v1"], "WidgetList")
    later = datetime(2027, 1, 1, tzinfo=UTC)
    assert established({**crd, "status": status}, later) == status


def test_versions_are_found_by_name() -> None:
    assert version_of(definition(V1, V2), "example.com/v2") == V2
    assert version_of(definition(V1, V2), "example.com/v9") is None
