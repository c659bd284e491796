"""Sources decide when a document is built again."""

from typing import Any

from devlet.objects.kinds import BUILT_IN, Catalogue, Kind
from devlet.serve.kube_api.openapi_schemas import OBJECT_META, V3
from devlet.serve.kube_api.openapi_sources import Source, render

ROBOT = Kind("Robot", "robots", ("example.com/v1",))


def schema_with(arms: str) -> Any:
    return lambda api_version, kind: {"type": "object", "description": arms}


def test_sources_are_equal_if_kinds_and_schemas_are() -> None:
    catalogue = Catalogue([*BUILT_IN, ROBOT])
    one = Source.of(catalogue, ["example.com/v1"], schema_with("two"))
    assert one == Source.of(Catalogue([ROBOT]), ["example.com/v1"], schema_with("two"))
    assert one != Source.of(catalogue, ["example.com/v1"], schema_with("three"))
    catalogue.remove(ROBOT)
    assert not Source.of(catalogue, ["example.com/v1"], schema_with("two")).resources


def test_a_built_in_kind_never_has_a_custom_schema() -> None:
    source = Source.of(Catalogue(BUILT_IN), ["v1"], schema_with("two"))
    assert [declared for _, declared in source.resources if declared is not None] == []


def test_custom_resources_add_the_components_of_metadata() -> None:
    found = Source.of(Catalogue([ROBOT]), ["example.com/v1"], None).components(V3)
    assert {"com.example.v1.Robot", "com.example.v1.RobotList", OBJECT_META} <= found.keys()


def test_the_same_content_has_the_same_tag() -> None:
    assert render({"a": 1}).etag == render({"a": 1}).etag
    assert render({"a": 1}).etag != render({"a": 2}).etag
    assert render({"a": 1}).etag.startswith('"')
