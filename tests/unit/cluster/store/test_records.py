import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.store.records import Change, Documents, Record, Table
from devlet.objects.identifiers import ObjectKey


def record(name: str = "a", version: int = 1, **members: object) -> Record:
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, **members}
    return Record(("ns", name), version, msgspec.json.encode(body))


def change(version: int, key: ObjectKey, previous: int = 0, *, deleted: bool = False) -> Change:
    return Change(version, 0, key, previous, deleted, 10)


def test_a_document_is_a_fresh_copy_each_time() -> None:
    one = record(data={"k": "v"})
    one.document()["data"]["k"] = "changed"
    assert one.document()["data"] == {"k": "v"}


def test_the_head_has_what_selectors_ask_for() -> None:
    one = record(spec={"nodeName": "n1", "containers": [1, 2]}, status={"podIP": "10.0.0.1"}, type="Normal")
    assert one.selectable["spec"] == {"nodeName": "n1"}
    assert (one.selectable["status"], one.selectable["type"]) == ({"podIP": "10.0.0.1"}, "Normal")


@pytest.mark.parametrize("spec", ["text", [1], 5])
def test_a_spec_that_is_not_an_object_is_accepted(spec: object) -> None:
    assert record(spec=spec).metadata.name == "a"


def test_metadata_of_the_wrong_type_is_left_out() -> None:
    body = {"kind": "Pod", "metadata": {"name": "a", "labels": {"k": 5}, "finalizers": ["f"], "ownerReferences": "x"}}
    one = Record(("ns", "a"), 1, msgspec.json.encode(body))
    assert (one.metadata.name, one.metadata.labels, one.metadata.finalizers) == ("a", {}, ("f",))
    assert one.metadata.owner_references == ()


def test_documents_are_decoded_as_they_are_read() -> None:
    documents = Documents([record("a"), record("b"), Record(("", "broken"), 3, b"not json")], "v1")
    assert len(documents) == 3
    assert [d["metadata"]["name"] for d in documents[:2]] == ["a", "b"]
    assert documents[1]["metadata"]["name"] == documents[-2]["metadata"]["name"] == "b"
    with pytest.raises(IndexError):
        documents[3]
    with pytest.raises(msgspec.DecodeError):
        documents[2]


def test_keys_are_in_order_and_of_one_namespace_if_asked() -> None:
    table = Table()
    for i, key in enumerate([("b", "x"), ("a", "y"), ("a", "x"), ("ab", "x")]):
        table.put(Record(key, i + 1, b"{}"), change(i + 1, key))
    assert list(table.keys()) == [("a", "x"), ("a", "y"), ("ab", "x"), ("b", "x")]
    assert list(table.keys("a")) == [("a", "x"), ("a", "y")]
    assert list(table.keys("a", after=("a", "x"))) == [("a", "y")]
    assert list(table.keys(after=("a", "y"))) == [("ab", "x"), ("b", "x")]
    assert list(table.keys("c")) == []


OPERATIONS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30)


@given(OPERATIONS, st.data())
def test_states_since_the_compaction_can_be_listed(operations: list[tuple[str, bool]], data: st.DataObject) -> None:
    table, state = Table(), dict[ObjectKey, int]()
    states: list[dict[ObjectKey, int]] = [{}]
    for version, (name, deleted) in enumerate(operations, start=1):
        key = ("", name)
        entry = change(version, key, state.get(key, 0), deleted=deleted)
        if deleted:
            old = table.remove(entry)
            state.pop(key, None)
        else:
            old = table.put(Record(key, version, b"{}"), entry)
            state[key] = version
        assert (old.version if old else 0) == entry.previous
        states.append(dict(state))
    compacted = data.draw(st.integers(0, len(operations)))
    gone = table.forget(compacted)
    assert [c.version for c in gone] == list(range(1, compacted + 1))
    for version in range(compacted, len(operations) + 1):
        then = {key: r.version for key, r in table.records.items()} | table.versions_at(version)
        assert {key: v for key, v in then.items() if v} == states[version]
        assert [c.version for c in table.changes(version)] == list(range(version + 1, len(operations) + 1))
    assert list(table.keys()) == sorted(state)
