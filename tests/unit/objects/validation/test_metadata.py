import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import metadata
from devlet.objects.validation.field_errors import forbidden, invalid, required, too_long, too_many
from devlet.objects.validation.metadata import FINALIZERS_MAX, OWNERS_MAX

GOOD = {"name": "n", "namespace": "ns"}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
SHAPE = names.dns_subdomain("A!")[0]


def check(members: Document, namespaced: bool | None = True) -> list[Cause]:
    return list(metadata.check({**GOOD, **members}, names.dns_subdomain, namespaced))


ACCEPTED: list[Document] = [
    {},
    {"name": "", "generateName": "web-"},
    {"labels": {"example.com/app": "Web_1", "empty": ""}},
    {"annotations": {"UPPER.example.com/x": "any text at all\n"}},
    {"ownerReferences": [OWNER, {**OWNER, "uid": "v", "controller": True}]},
    {"finalizers": ["example.com/f", "foregroundDeletion"]},
]


@pytest.mark.parametrize("members", ACCEPTED)
def test_good_metadata_is_accepted(members: Document) -> None:
    assert check(members) == []


@pytest.mark.spec("AL-2.01")
@pytest.mark.parametrize(
    ("members", "cause"),
    [
        ({"name": ""}, required("metadata.name", "name or generateName is required")),
        ({"name": "A!"}, invalid("metadata.name", "A!", SHAPE)),
        ({"generateName": "A!"}, invalid("metadata.generateName", "A!", SHAPE)),
        ({"namespace": ""}, required("metadata.namespace")),
        ({"namespace": "a.b"}, invalid("metadata.namespace", "a.b", "must not contain dots")),
        ({"generation": -1}, invalid("metadata.generation", -1, "must be greater than or equal to 0")),
        (
            {"labels": {"a": "no spaces"}},
            invalid("metadata.labels", "no spaces", names.label_value("no spaces")[0]),
        ),
        ({"labels": {"a b": ""}}, invalid("metadata.labels", "a b", names.label_key("a b")[0])),
        ({"annotations": {"a b": ""}}, invalid("metadata.annotations", "a b", names.label_key("a b")[0])),
        ({"annotations": {"a": "x" * 2**18}}, too_long("metadata.annotations", 262144)),
        (
            {"ownerReferences": [{**OWNER, "apiVersion": ""}]},
            invalid("metadata.ownerReferences.apiVersion", "", "version must not be empty"),
        ),
        (
            {"ownerReferences": [{**OWNER, "kind": ""}]},
            invalid("metadata.ownerReferences.kind", "", "must not be empty"),
        ),
        (
            {"ownerReferences": [{**OWNER, "name": ""}]},
            invalid("metadata.ownerReferences.name", "", "must not be empty"),
        ),
        (
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            invalid("metadata.ownerReferences.uid", "", "must not be empty"),
        ),
        ({"finalizers": ["a b"]}, invalid("metadata.finalizers[0]", "a b", names.qualified_name("a b")[0])),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            invalid(
                "metadata.finalizers",
                ["orphan", "foregroundDeletion"],
                "finalizer orphan and foregroundDeletion cannot be both set",
            ),
        ),
    ],
)
def test_bad_metadata_is_refused(members: Document, cause: Cause) -> None:
    assert check(members) == [cause]


def test_a_second_controller_is_refused() -> None:
    owners = [{**OWNER, "controller": True}, {**OWNER, "name": "q", "uid": "v", "controller": True}]
    (cause,) = check({"ownerReferences": owners})
    assert cause.message.endswith('Found "true" in references for Pod/p and Pod/q')


def test_an_event_cannot_own_anything() -> None:
    (cause,) = check({"ownerReferences": [{**OWNER, "kind": "Event"}]})
    assert "is disallowed from being an owner" in cause.message


def test_an_object_of_the_cluster_has_no_namespace() -> None:
    assert check({}, namespaced=False) == [forbidden("metadata.namespace", "not allowed on this type")]
    assert check({"namespace": ""}, namespaced=False) == []


def test_the_namespace_of_an_unknown_kind_is_free() -> None:
    assert check({}, namespaced=None) == check({"namespace": ""}, namespaced=None) == []


STORED = {**GOOD, "uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z", "generation": 3, "finalizers": ["a/b"]}
DELETED = {**STORED, "deletionTimestamp": "2024-01-02T00:00:00Z"}


def update(changes: Document, old: Document = STORED) -> list[Cause]:
    return list(metadata.check_update({**old, **changes}, old))


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"name": "m"}, invalid("metadata.name", "m", "field is immutable")),
        ({"namespace": "other"}, invalid("metadata.namespace", "other", "field is immutable")),
        ({"uid": "v"}, invalid("metadata.uid", "v", "field is immutable")),
        (
            {"creationTimestamp": "2025-01-01T00:00:00Z"},
            invalid("metadata.creationTimestamp", "2025-01-01T00:00:00Z", "field is immutable"),
        ),
        (
            {"deletionTimestamp": "2025-01-01T00:00:00Z"},
            invalid("metadata.deletionTimestamp", "2025-01-01T00:00:00Z", "field is immutable"),
        ),
        ({"generation": 2}, invalid("metadata.generation", 2, "must not be decremented")),
    ],
)
def test_fields_set_by_the_server_stay(changes: Document, cause: Cause) -> None:
    assert update(changes) == [cause]


def test_fields_set_by_the_server_may_be_left_out() -> None:
    assert list(metadata.check_update(GOOD, STORED)) == []


def test_finalizers_come_and_go_while_the_object_lives() -> None:
    assert update({"finalizers": ["c/d"]}) == update({"finalizers": []}) == []


def test_no_finalizer_is_added_to_an_object_that_is_being_deleted() -> None:
    detail = 'no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d"}'
    assert update({"finalizers": ["a/b", "c/d"]}, DELETED) == [forbidden("metadata.finalizers", detail)]
    assert update({"finalizers": []}, DELETED) == []


texts = st.sampled_from(["a", "A!", "", "example.com/x", "kubernetes"])
some_metadata: st.SearchStrategy[Document] = st.fixed_dictionaries(
    {},
    optional={
        "name": texts,
        "generateName": texts,
        "namespace": texts,
        "generation": st.integers(-1, 1),
        "labels": st.none() | st.dictionaries(texts, texts, max_size=2),
        "annotations": st.dictionaries(texts, texts, max_size=2),
        "ownerReferences": st.lists(st.just(OWNER) | st.just({"kind": "Pod"}), max_size=2),
        "finalizers": st.lists(texts, max_size=2),
        "uid": texts,
    },
)


@given(some_metadata, some_metadata, st.sampled_from([True, False, None]))
def test_unchanged_metadata_is_accepted_again(new: Document, old: Document, namespaced: bool | None) -> None:
    if metadata.is_checked(new, old):
        rule = names.dns_subdomain
        assert list(metadata.check(new, rule, namespaced)) == list(metadata.check(old, rule, namespaced))


@given(some_metadata, st.data())
def test_any_change_of_what_is_checked_is_noticed(old: Document, data: st.DataObject) -> None:
    changed = data.draw(some_metadata)
    differs = {key for key in {*old, *changed} - {"uid"} if old.get(key) != changed.get(key)}
    assert metadata.is_checked(changed, old) == (not differs)


def test_owners_and_finalizers_are_limited() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    for key, item, most in (("ownerReferences", owner, OWNERS_MAX), ("finalizers", "a.b/c", FINALIZERS_MAX)):
        assert check({key: [item] * most}) == []
        assert check({key: [item] * (most + 1)}) == [too_many(f"metadata.{key}", most + 1, most)]
