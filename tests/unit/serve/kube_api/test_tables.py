"""Tables, compared with what kube-apiserver showed for the same objects (`tests/vectors/tables.json`)."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects.conversion import convert
from devlet.objects.kinds import BUILT_IN, CONFIG_MAPS, Catalogue, Kind, Resource
from devlet.objects.values.timestamps import parse_time
from devlet.serve.kube_api import paths
from devlet.serve.kube_api.tables import include_object, printer, table, table_for_watch

Document = dict[str, Any]

VECTORS = json.loads((Path(__file__).resolve().parents[3] / "vectors" / "tables.json").read_text())
CATALOGUE = Catalogue(BUILT_IN)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONFIG_MAP = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"name": "c", "resourceVersion": "7", "creationTimestamp": "2026-01-02T03:04:00Z"},
    "data": {"a": "b"},
}

pytestmark = pytest.mark.spec("KA-5")


def resource_at(path: str) -> Resource:
    target = paths.parse(CATALOGUE, path)
    assert isinstance(target, paths.Target)
    return target.resource


def without_age(resource: Resource, cells: list[Any]) -> list[Any]:
    return [cell for column, cell in zip(printer(resource).columns, cells, strict=True) if column.name != "Age"]


def case_name(entry: Document) -> str:
    return f"{entry['path'].rpartition('/')[2]}/{entry['document']['metadata']['name']}"


@pytest.mark.parametrize("path", VECTORS["columns"])
def test_the_columns_are_those_of_kube_apiserver(path: str) -> None:
    shown = table(resource_at(path), [], now=NOW)["columnDefinitions"]
    columns = [[column[key] for key in ("name", "type", "format", "priority")] for column in shown]
    assert columns == VECTORS["columns"][path]


@pytest.mark.parametrize("entry", VECTORS["objects"], ids=case_name)
def test_the_cells_are_those_of_kube_apiserver(entry: Document) -> None:
    resource = resource_at(entry["path"])
    row = table(resource, [entry["listed"]], now=parse_time(VECTORS["now"]))["rows"][0]
    cells, wanted = without_age(resource, row["cells"]), without_age(resource, entry["cells"])
    assert cells == wanted
    assert [type(cell) for cell in cells] == [type(cell) for cell in wanted]
    assert [condition["reason"] for condition in row.get("conditions", ())] == entry.get("reasons", [])


@pytest.mark.parametrize(
    "entry",
    [entry for entry in VECTORS["objects"] if len(resource_at(entry["path"]).kind.api_versions) > 1],
    ids=case_name,
)
def test_every_version_of_an_object_has_the_same_cells(entry: Document) -> None:
    resource = resource_at(entry["path"])
    now = parse_time(VECTORS["now"])
    for api_version in resource.kind.api_versions:
        shown = table(Resource(resource.kind, api_version), [convert(entry["listed"], api_version)], now=now)
        assert without_age(resource, shown["rows"][0]["cells"]) == without_age(resource, entry["cells"])


def test_the_recorded_objects_are_of_all_kinds() -> None:
    recorded = {resource_at(path).kind.key for path in VECTORS["columns"]}
    always_there = {"namespaces", "customresourcedefinitions.apiextensions.k8s.io"}
    assert {kind.key for kind in BUILT_IN} - recorded <= always_there


def test_a_table_is_a_list() -> None:
    shown = table(CONFIG_MAPS, [CONFIG_MAP], now=NOW, resource_version="9", continue_="more", remaining=3)
    assert (shown["kind"], shown["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert shown["metadata"] == {"resourceVersion": "9", "continue": "more", "remainingItemCount": 3}
    assert shown["rows"][0]["cells"] == ["c", 1, "5s"]


def test_a_row_contains_the_requested_part_of_the_object() -> None:
    def held(include: str) -> Any:
        shown = table(CONFIG_MAPS, [CONFIG_MAP], now=NOW, include_object=include_object(include))
        return shown["rows"][0]["object"]

    assert held("Object") == CONFIG_MAP
    assert held("None") is None
    assert held("") == held("Metadata")
    assert held("Metadata")["kind"] == "PartialObjectMetadata"
    assert held("Metadata")["metadata"] == CONFIG_MAP["metadata"]


def test_another_value_of_include_object_is_refused() -> None:
    with pytest.raises(BadRequest, match='includeObject: Invalid value: "Everything"'):
        include_object("Everything")


def test_the_older_version_of_tables_equals_the_newer() -> None:
    shown = table(CONFIG_MAPS, [CONFIG_MAP], now=NOW, version="v1beta1")
    assert shown["apiVersion"] == "meta.k8s.io/v1beta1"
    assert shown["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_only_the_first_event_of_a_stream_has_the_columns() -> None:
    how = printer(CONFIG_MAPS)
    first = table_for_watch(how, CONFIG_MAP, now=NOW, first=True)
    second = table_for_watch(how, CONFIG_MAP, now=NOW, first=False)
    assert len(first["columnDefinitions"]) == 3
    assert second["columnDefinitions"] is None
    assert second["metadata"] == {"resourceVersion": "7"}
    assert second["rows"] == first["rows"]


def test_a_bookmark_has_a_row_with_its_annotations() -> None:
    metadata = {"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}}
    bookmark = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    shown = table_for_watch(printer(CONFIG_MAPS), bookmark, now=NOW, first=False)
    assert shown["rows"][0]["object"]["metadata"] == metadata
    assert shown["rows"][0]["cells"] == ["", 0, "<unknown>"]


def test_a_custom_kind_is_shown_with_its_age() -> None:
    robots = Resource(Kind("Robot", "robots", ("example.com/v1",)), "example.com/v1")
    document = {"metadata": {"name": "r", "creationTimestamp": "2026-01-02T03:04:00Z"}, "spec": {"arms": 2}}
    assert table(robots, [document], now=NOW)["rows"][0]["cells"] == ["r", "5s"]
    columns = [{"name": "Arms", "type": "integer", "jsonPath": ".spec.arms"}]
    shown = table(robots, [document], now=NOW, additional_columns=columns)
    assert shown["rows"][0]["cells"] == ["r", 2]


KEYS = """
    metadata name creationTimestamp deletionTimestamp labels spec status state conditions containers initContainers
    containerStatuses initContainerStatuses terminated waiting type taint pool allocation reservedFor selector
    matchLabels matchExpressions ports series source involvedObject regarding subjects roleRef pools addresses capacity
    claimRef
""".split()
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(KEYS), below, max_size=4),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), anything, max_size=6))
def test_no_document_breaks_a_table(document: Document) -> None:
    for kind in BUILT_IN:
        resource = Resource(kind, kind.api_versions[0])
        shown = table(resource, [document], now=NOW)
        assert len(shown["rows"][0]["cells"]) == len(shown["columnDefinitions"])
