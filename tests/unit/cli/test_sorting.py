from devlet.cli.output import Found
from devlet.cli.resources import Resource
from devlet.cli.sorting import order_by

PODS = Resource("", "v1", "pods", "pod", "Pod", True)


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
