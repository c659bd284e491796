from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.store.owners import Owners
from devlet.cluster.store.records import Record


def record(name: str, *owners: str, **metadata: Any) -> Record:
    references = [{"uid": owner} for owner in owners]
    body = {"metadata": {"name": name, "uid": name, "ownerReferences": references, **metadata}}
    return Record(("", name), 1, msgspec.json.encode(body))


def test_dependents_are_found_by_the_uid_of_their_owner() -> None:
    owners = Owners()
    owners.update("configmaps", None, record("a", "o1", "o2"))
    owners.update("secrets", None, record("a", "o1"))
    assert owners.dependents("o1") == {("configmaps", ("", "a")), ("secrets", ("", "a"))}
    assert owners.dependents("o2") == {("configmaps", ("", "a"))}
    assert owners.dependents("nobody") == set()


def test_an_owner_that_is_let_go_has_no_dependents() -> None:
    owners = Owners()
    owners.update("configmaps", None, record("a", "o1", "o2"))
    owners.update("configmaps", record("a", "o1", "o2"), record("a", "o2"))
    owners.update("configmaps", record("a", "o2"), None)
    assert not owners.dependents("o1") | owners.dependents("o2")


def test_the_listener_hears_of_what_may_matter() -> None:
    owners, heard = Owners(), list[str]()
    owners.listen(lambda kind, old, new: heard.append(next(r for r in (new, old) if r is not None).key[1]))
    owners.update("k", None, record("plain"))
    owners.update("k", None, record("owned", "o"))
    owners.update("k", record("owned", "o"), record("owned"))
    owners.update("k", record("plain"), record("plain", deletionTimestamp="2025-01-01T00:00:00Z"))
    owners.update("k", record("gone"), None)
    owners.update("k", None, record("child", "parent"))
    owners.update("k", record("parent"), record("parent"))
    assert heard == ["owned", "owned", "plain", "gone", "child", "parent"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.sets(st.sampled_from("xyz")))))
def test_the_index_is_what_the_newest_references_say(changes: list[tuple[str, set[str] | None]]) -> None:
    owners, current = Owners(), dict[str, set[str]]()
    for name, references in changes:
        old = record(name, *current[name]) if name in current else None
        owners.update("k", old, None if references is None else record(name, *references))
        if references is None:
            current.pop(name, None)
        else:
            current[name] = references
    for uid in "xyz":
        assert owners.dependents(uid) == {("k", ("", name)) for name, uids in current.items() if uid in uids}
