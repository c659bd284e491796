import pytest

from devlet.cli.output import Found
from devlet.cli.path_output import order_by, printer
from devlet.cli.resources import Resource
from devlet.errors import InvalidInput

PODS = Resource("", "v1", "pods", "pod", "Pod", True)
POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"tags": ["x", "y"], "text": "a\nb"}}


def lines(kind: str, text: str, *, headers: bool = True) -> list[str]:
    return list(printer(kind, text, headers=headers).all([Found(PODS, POD)], single=True))


def test_a_template_is_rendered_once() -> None:
    assert lines("jsonpath", "{.metadata.name}!") == ["p!"]


def test_columns_hold_what_their_paths_find() -> None:
    text = "NAME:.metadata.name,TAGS:.spec.tags[*],TWO:.spec.tags[0,1],TEXT:{.spec.text},NO:.x"
    assert lines("custom-columns", text) == [
        "NAME   TAGS   TWO   TEXT   NO",
        "p      x,y    x,y   a b    <none>",
    ]
    assert lines("custom-columns", "N:metadata.name", headers=False) == ["p"]


def test_titles_are_printed_once_while_objects_are_followed() -> None:
    printing = printer("custom-columns", "N:.metadata.name", headers=True)
    assert [line for _ in range(2) for line in printing.one(Found(PODS, POD))] == ["N", "p", "p"]


@pytest.mark.parametrize("text", ["NAME", "NAME:", ":.a", "A:.a,,B:.b", "A:.a["])
def test_a_column_needs_a_title_and_a_path(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"TITLE:PATH|JSONPath"):
        printer("custom-columns", text, headers=True)


def objects(*sizes: object) -> Found:
    return Found(PODS, {"kind": "PodList", "items": [{"size": size} for size in sizes]})


def test_objects_of_all_pages_are_sorted_numbers_first_and_nothing_last() -> None:
    found = order_by(".size")([objects(10, "b", {}), objects(9, "a")])
    assert [f.document["size"] for f in found] == [9, 10, "a", "b", {}]
    missing = order_by("nope")([objects(2, 1)])
    assert [f.document["size"] for f in missing] == [2, 1]


def test_rows_of_tables_are_sorted_by_their_objects() -> None:
    tables = [Found(PODS, {"kind": "Table", "columnDefinitions": [1], "rows": [{"object": {"n": n}}]}) for n in (2, 1)]
    [sorted_table] = order_by("{.n}")(tables)
    assert [row["object"]["n"] for row in sorted_table.document["rows"]] == [1, 2]
    assert sorted_table.document["columnDefinitions"] == [1]


def test_nothing_stays_nothing() -> None:
    assert order_by(".x")([]) == []
