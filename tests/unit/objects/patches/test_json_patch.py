from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects import documents
from devlet.objects.documents import Document
from devlet.objects.patches import json_patch
from devlet.objects.patches.json_patch import same
from devlet.objects.patches.limits import MAX_COPIED_BYTES, MAX_DEPTH, PatchFailed

# The examples of RFC 6902, appendix A, in order, as document, operations, result.
RFC_EXAMPLES: list[tuple[str, Document, list[Document], Document]] = [
    ("member added", {"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ("element inserted", {"l": [1, 3]}, [{"op": "add", "path": "/l/1", "value": 2}], {"l": [1, 2, 3]}),
    ("member removed", {"a": 1, "b": 2}, [{"op": "remove", "path": "/b"}], {"a": 1}),
    ("element removed", {"l": [1, 2, 3]}, [{"op": "remove", "path": "/l/1"}], {"l": [1, 3]}),
    ("value replaced", {"a": 1, "b": 2}, [{"op": "replace", "path": "/a", "value": 9}], {"a": 9, "b": 2}),
    (
        "member moved",
        {"a": {"x": 1, "y": 2}, "b": {"z": 3}},
        [{"op": "move", "from": "/a/y", "path": "/b/w"}],
        {"a": {"x": 1}, "b": {"z": 3, "w": 2}},
    ),
    ("element moved", {"l": [1, 2, 3, 4]}, [{"op": "move", "from": "/l/1", "path": "/l/3"}], {"l": [1, 3, 4, 2]}),
    (
        "tests that hold",
        {"a": "x", "l": ["p", 2, "q"]},
        [{"op": "test", "path": "/a", "value": "x"}, {"op": "test", "path": "/l/1", "value": 2}],
        {"a": "x", "l": ["p", 2, "q"]},
    ),
    ("nested member added", {"a": 1}, [{"op": "add", "path": "/b", "value": {"c": {}}}], {"a": 1, "b": {"c": {}}}),
    ("unknown key ignored", {"a": 1}, [{"op": "add", "path": "/b", "value": 2, "xyz": 3}], {"a": 1, "b": 2}),
    (
        "escapes in order",
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}, {"op": "replace", "path": "/~1", "value": 8}],
        {"/": 8, "~1": 10},
    ),
    ("list appended", {"l": ["x"]}, [{"op": "add", "path": "/l/-", "value": ["y"]}], {"l": ["x", ["y"]]}),
    ("null is a value", {"a": 1}, [{"op": "replace", "path": "/a", "value": None}], {"a": None}),
    ("empty key", {"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
    ("whole document", {"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ("copied", {"a": {"x": [1]}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": [1]}, "b": {"x": [1]}}),
    ("existing member added", {"a": 1}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
    ("moved onto itself", {"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
]

CANNOT: list[tuple[str, Document, Document]] = [
    ("a test fails", {"a": "b"}, {"op": "test", "path": "/a", "value": "c"}),
    ("a string is not a number", {"a": 10}, {"op": "test", "path": "/a", "value": "10"}),
    ("true is not one", {"a": 1}, {"op": "test", "path": "/a", "value": True}),
    ("the parent is missing", {"a": 1}, {"op": "add", "path": "/b/c", "value": 1}),
    ("the member to remove is missing", {"a": 1}, {"op": "remove", "path": "/b"}),
    ("the member to replace is missing", {"a": 1}, {"op": "replace", "path": "/b", "value": 1}),
    ("the source of a move is missing", {"a": 1}, {"op": "move", "from": "/b", "path": "/c"}),
    ("the source of a copy is missing", {"a": 1}, {"op": "copy", "from": "/b", "path": "/c"}),
    ("the index is past the end", {"l": [1]}, {"op": "add", "path": "/l/2", "value": 1}),
    ("the element is not there", {"l": [1]}, {"op": "remove", "path": "/l/1"}),
    ("an index has no leading zero", {"l": [1, 2]}, {"op": "remove", "path": "/l/01"}),
    ("an index is not negative", {"l": [1, 2]}, {"op": "remove", "path": "/l/-1"}),
    ("an index is not a fraction", {"l": [1, 2]}, {"op": "remove", "path": "/l/1e0"}),
    ("an index has ASCII digits", {"l": [1, 2]}, {"op": "remove", "path": "/l/١"}),
    ("an index may not be endless", {"l": [1, 2]}, {"op": "remove", "path": "/l/" + "9" * 5000}),
    ("the end has no element", {"l": [1]}, {"op": "remove", "path": "/l/-"}),
    ("a string has no members", {"a": "x"}, {"op": "add", "path": "/a/b", "value": 1}),
    ("nothing moves into itself", {"a": {"b": 1}}, {"op": "move", "from": "/a", "path": "/a/b"}),
    ("the document cannot go", {"a": 1}, {"op": "remove", "path": ""}),
    ("the document must be an object", {"a": 1}, {"op": "replace", "path": "", "value": [1]}),
]

MALFORMED: list[tuple[str, Any, str]] = [
    ("an object", {"op": "add"}, "a list of operations"),
    ("no list", None, "a list of operations"),
    ("a string in the list", ["add"], "operation 0 is not an object"),
    ("no op", [{"path": "/a"}], '"op" must be one of'),
    ("an unknown op", [{"op": "put", "path": "/a", "value": 1}], "got 'put'"),
    ("an op that is no string", [{"op": ["add"], "path": "/a", "value": 1}], '"op" must be one of'),
    ("no path", [{"op": "remove"}], 'remove needs "path"'),
    ("no from", [{"op": "move", "path": "/a"}], 'move needs "from"'),
    ("no value", [{"op": "add", "path": "/a"}], 'add needs a "value"'),
    ("a path that is no pointer", [{"op": "remove", "path": "a"}], 'must be empty or begin with "/"'),
    ("a bad escape", [{"op": "remove", "path": "/a~2"}], "must be followed by 0 or 1"),
    ("too many operations", [{"op": "test", "path": "", "value": {}}] * 10_001, "10000, got 10001"),
]


@pytest.mark.spec("KA-3.7-json")
@pytest.mark.parametrize(
    ("document", "operations", "result"), [c[1:] for c in RFC_EXAMPLES], ids=[c[0] for c in RFC_EXAMPLES]
)
def test_every_example_of_the_rfc_comes_out(document: Document, operations: list[Document], result: Document) -> None:
    before = documents.copy(document)
    assert json_patch.apply(document, operations) == result
    assert document == before


@pytest.mark.spec("KA-3.7-json")
@pytest.mark.parametrize(("document", "operation"), [c[1:] for c in CANNOT], ids=[c[0] for c in CANNOT])
def test_an_operation_that_does_not_fit_fails_the_patch(document: Document, operation: Document) -> None:
    before = documents.copy(document)
    with pytest.raises(PatchFailed):
        json_patch.apply(document, [{"op": "add", "path": "/new", "value": 1}, operation])
    assert document == before


@pytest.mark.spec("KA-3.7-json")
@pytest.mark.parametrize(("operations", "text"), [c[1:] for c in MALFORMED], ids=[c[0] for c in MALFORMED])
def test_an_invalid_patch_is_a_bad_request(operations: Any, text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        json_patch.apply({}, operations)
    assert text in str(refused.value)


def test_a_failure_names_the_operation_and_the_path() -> None:
    with pytest.raises(PatchFailed, match='remove "/data/x~1y/z": "/data/x~1y" does not exist'):
        json_patch.apply({"data": {}}, [{"op": "remove", "path": "/data/x~1y/z"}])


def test_a_test_for_null_holds_where_the_key_is_absent_but_not_where_its_parent_is() -> None:
    assert json_patch.apply({"a": {}}, [{"op": "test", "path": "/a/b", "value": None}]) == {"a": {}}
    with pytest.raises(PatchFailed):
        json_patch.apply({}, [{"op": "test", "path": "/a/b", "value": None}])


def test_ten_thousand_operations_are_allowed() -> None:
    operations = [{"op": "add", "path": "/l/-", "value": i} for i in range(10_000)]
    assert len(json_patch.apply({"l": []}, operations)["l"]) == 10_000


def test_copies_cannot_grow_without_bound() -> None:
    double = [{"op": "copy", "from": "/l", "path": "/l/-"}] * 60
    with pytest.raises(PatchFailed, match=f"copies more than {MAX_COPIED_BYTES} bytes"):
        json_patch.apply({"l": ["x" * 100]}, double)


def test_no_operation_can_nest_deeper_than_the_limit() -> None:
    deeper = [{"op": "copy", "from": "/a", "path": "/a/b"}] * (MAX_DEPTH + 1)
    with pytest.raises(PatchFailed, match="levels deep"):
        json_patch.apply({"a": {}}, deeper)


def test_a_value_given_once_and_used_twice_is_not_shared() -> None:
    value = {"n": 1}
    operations = [
        {"op": "add", "path": "/a", "value": value},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "replace", "path": "/b/n", "value": 2},
    ]
    assert json_patch.apply({}, operations) == {"a": {"n": 1}, "b": {"n": 2}}
    assert value == {"n": 1}


def test_replacing_keeps_a_member_in_its_place() -> None:
    patched = json_patch.apply({"a": 1, "b": 2}, [{"op": "replace", "path": "/a", "value": 3}])
    assert list(patched) == ["a", "b"]


def test_equality_is_that_of_json() -> None:
    assert same({"a": [1, None, "x"]}, {"a": [1.0, None, "x"]})
    assert not same([True], [1])
    assert not same({"a": 0}, {"a": False})
    assert not same([1, 2], [1])


keys = st.sampled_from(["a", "b", "x/y", "m~n", ""])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(keys, values, max_size=4)


def difference(old: Any, new: Any, path: str = "") -> list[Document]:
    """The oracle: operations that lead from one value to the other, written the slow and obvious way."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if same(old, new) else [{"op": "replace", "path": path, "value": new}]
    found: list[Document] = []
    for key in old.keys() | new.keys():
        below = path + "/" + key.replace("~", "~0").replace("/", "~1")
        if key not in new:
            found.append({"op": "remove", "path": below})
        elif key not in old:
            found.append({"op": "add", "path": below, "value": new[key]})
        else:
            found += difference(old[key], new[key], below)
    return found


@pytest.mark.spec("KA-3.7-json")
@settings(deadline=None)
@given(objects, objects)
def test_the_difference_of_two_documents_leads_from_one_to_the_other(old: Document, new: Document) -> None:
    before = documents.copy(old)
    result = json_patch.apply(old, [*difference(old, new), {"op": "test", "path": "", "value": new}])
    assert same(result, new)
    assert same(old, before)


@settings(deadline=None)
@given(objects, st.lists(st.fixed_dictionaries({"op": st.just("add"), "path": st.text("/a01-~", max_size=6)})))
def test_any_pointer_is_either_followed_or_refused(document: Document, operations: list[Document]) -> None:
    for operation in operations:
        try:
            result = json_patch.apply(document, [{**operation, "value": 1}])
        except (BadRequest, PatchFailed) as refused:
            assert str(refused)
        else:
            assert isinstance(result, dict)
