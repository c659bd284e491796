from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.patches import field_sets
from devlet.objects.patches.field_sets import EMPTY, FieldSet, compare, field_set, parse
from devlet.objects.patches.topology import of
from devlet.objects.schema.messages import message_of

POD = message_of("v1", "Pod")
CONFIG_MAP = message_of("v1", "ConfigMap")


def pod(*containers: Document, **rest: Any) -> Document:
    return {"spec": {"containers": list(containers), **rest}}


def changed(old: Document | None, new: Document) -> Document:
    return field_sets.changed(old, new, POD).format()


def test_the_set_of_a_document_follows_the_schema() -> None:
    document = {
        "metadata": {"labels": {"a": "1"}, "finalizers": ["f/1"], "annotations": {}},
        "spec": {
            "nodeSelector": {"x": "y"},
            "tolerations": [{"key": "k"}],
            "containers": [{"name": "c", "ports": [{"containerPort": 80}]}],
            "securityContext": {},
        },
    }
    assert field_set(document, POD).format() == {
        "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {'v:"f/1"': {}}, "f:annotations": {}},
        "f:spec": {
            "f:nodeSelector": {},
            "f:tolerations": {},
            "f:containers": {
                'k:{"name":"c"}': {
                    ".": {},
                    "f:name": {},
                    "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                }
            },
            "f:securityContext": {},
        },
    }


def test_nulls_and_empty_merge_lists_are_in_no_set() -> None:
    assert not field_set({"metadata": {"finalizers": []}, "spec": None}, POD)


def test_without_a_schema_maps_are_divided_and_lists_are_one_piece() -> None:
    document = {"spec": {"a": {"b": 1}, "l": [{"name": "x"}]}, "metadata": {"finalizers": ["f"]}}
    assert field_set(document, None).format() == {
        "f:spec": {"f:a": {".": {}, "f:b": {}}, "f:l": {}},
        "f:metadata": {"f:finalizers": {'v:"f"': {}}},
    }


def test_new_containers_of_fields_are_part_of_a_change_unless_every_object_has_them() -> None:
    new = {"metadata": {"labels": {"a": "1"}}, **pod({"name": "c", "resources": {}})}
    assert changed(None, new) == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:resources": {}}}},
    }


def test_only_what_differs_has_changed() -> None:
    old = pod({"name": "a", "image": "1"}, {"name": "b"}, nodeName="n")
    new = pod({"name": "b"}, {"name": "a", "image": "2"}, nodeName="n")
    assert changed(old, new) == {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}
    assert changed(old, old) == {}


def test_a_removed_object_is_one_member_with_everything_below_it() -> None:
    found = compare(pod({"name": "a", "image": "1"}, {"name": "b"}), pod({"name": "b"}), POD)
    assert (found.written, found.removed.format()) == (EMPTY, {"f:spec": {"f:containers": {'k:{"name":"a"}': {}}}})


def test_a_defaulted_key_names_the_same_element() -> None:
    old = pod({"name": "a", "ports": [{"containerPort": 80}]})
    new = pod({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]})
    port: Document = {'k:{"containerPort":80,"protocol":"TCP"}': {"f:protocol": {}}}
    assert changed(old, new) == {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:ports": port}}}}


def test_an_object_that_becomes_a_value_loses_its_fields() -> None:
    found = compare({"spec": {"a": {"b": 1}}}, {"spec": {"a": 2}}, None)
    assert found.written.format() == {"f:spec": {"f:a": {}}}
    assert found.removed.format() == {"f:spec": {"f:a": {"f:b": {}}}}


def test_fields_v1_is_read_in_any_order_and_written_in_one() -> None:
    raw: Document = {"f:b": {}, 'k:{"b": 1, "a":"x"}': {"f:x": {}, ".": {}}, 'v:"s"': {}, "i:0": {".": {}}, "f:a": {}}
    assert list(parse(raw).format()) == ["f:a", "f:b", "i:0", 'k:{"a":"x","b":1}', 'v:"s"']
    assert parse(raw).format()["i:0"] == {}
    assert parse({}) == EMPTY


@pytest.mark.parametrize(
    "raw", [None, [], {"f:a": 1}, {"a": {}}, {"k:1": {}}, {"k:{": {}}, {"k:{}": {}}, {"i:x": {}}, {"x:y": {}}, {"": {}}]
)
def test_what_is_not_fields_v1_is_a_bad_request(raw: Any) -> None:
    with pytest.raises(BadRequest, match="fieldsV1"):
        parse(raw)


def test_fields_v1_that_is_too_deep_is_a_bad_request() -> None:
    raw: Document = {}
    for _ in range(5000):
        raw = {"f:a": raw}
    with pytest.raises(BadRequest, match="levels deep"):
        parse(raw)


def test_paths_are_readable() -> None:
    tree = {
        "f:spec": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:name": {}}, 'v:"x"': {}, "i:3": {}},
        "f:data": {"f:a": {}},
    }
    assert list(parse(tree).paths()) == [
        ".data.a",
        ".spec[3]",
        '.spec[containerPort=80,protocol="TCP"]',
        '.spec[containerPort=80,protocol="TCP"].name',
        '.spec[="x"]',
    ]


def test_removing_with_all_below_keeps_the_parents_that_are_members() -> None:
    owned = parse({"f:a": {".": {}, "f:b": {"f:c": {}}}, "f:d": {"f:e": {}}})
    assert owned.without_below(parse({"f:a": {"f:b": {}}, "f:d": {}})).format() == {"f:a": {}}


def test_parents_are_added_for_fields_but_not_for_elements() -> None:
    owned = parse({"f:l": {'k:{"name":"a"}': {"f:x": {}}}})
    assert owned.with_parents().format() == {"f:l": {".": {}, 'k:{"name":"a"}': {"f:x": {}}}}


elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"s"'])
trees: st.SearchStrategy[Document] = st.recursive(
    st.just({}), lambda below: st.dictionaries(elements | st.just("."), below, max_size=4), max_leaves=12
)
sets = trees.map(parse)


def members(fields: FieldSet) -> set[str]:
    """The oracle: a set as a set."""
    return set(fields.paths())


@settings(deadline=None)
@given(sets, sets)
def test_the_operations_are_those_of_sets(one: FieldSet, other: FieldSet) -> None:
    assert members(one | other) == members(one) | members(other)
    assert members(one - other) == members(one) - members(other)
    assert members(one & other) == members(one) & members(other)
    assert one.covers(other) == (members(one) >= members(other))
    assert bool(one) == bool(members(one))
    assert (one == other) == (members(one) == members(other))


@settings(deadline=None)
@given(sets, sets)
def test_removing_below_leaves_nothing_that_begins_with_a_member(one: FieldSet, other: FieldSet) -> None:
    def is_below(path: str) -> bool:
        return any(path == gone or path.startswith((gone + ".", gone + "[")) for gone in members(other))

    assert members(one.without_below(other)) == {path for path in members(one) if not is_below(path)}


@settings(deadline=None)
@given(sets)
def test_formatting_and_parsing_are_inverse(fields: FieldSet) -> None:
    assert parse(fields.format()) == fields


values = st.recursive(
    st.integers(0, 2), lambda inner: st.dictionaries(st.sampled_from("ab"), inner, max_size=2), max_leaves=5
)
objects: st.SearchStrategy[Document] = st.fixed_dictionaries(
    {}, optional={"spec": st.dictionaries(st.sampled_from("abc"), values, max_size=3)}
)


@settings(deadline=None)
@given(objects, objects)
def test_two_objects_differ_where_one_is_written_or_removed_and_nowhere_else(old: Document, new: Document) -> None:
    found = compare(old, new, None)
    assert bool(found) == (old != new)
    backwards = compare(new, old, None)
    for path in found.removed.paths():
        assert path in members(backwards.written)


@settings(deadline=None)
@given(sets, sets)
def test_removing_nothing_returns_the_same_set(one: FieldSet, other: FieldSet) -> None:
    for left in (one - other, one.without_below(other)):
        assert (left is one) == (left == one)


names = st.lists(st.fixed_dictionaries({"name": st.sampled_from("abc"), "image": st.sampled_from("ij")}), max_size=3)
pods: st.SearchStrategy[Document] = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({"labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))}),
        "spec": st.fixed_dictionaries({}, optional={"containers": names, "nodeName": st.none() | st.just("n")}),
        "status": st.fixed_dictionaries({}, optional={"conditions": names, "phase": st.sampled_from("xy")}),
    },
)


@settings(deadline=None)
@given(pods, pods)
def test_members_that_are_equal_as_a_whole_have_no_differences(old: Document, new: Document) -> None:
    message = message_of("v1", "Pod")
    written, removed = field_sets._compare_fields(of(message), old, new)
    assert compare(old, new, message) == field_sets.Comparison(FieldSet(written or {}), FieldSet(removed or {}))
