import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import attributes
from devlet.objects.validation.field_errors import invalid, name_errors, too_long

ONE = "exactly one value must be specified"
SEMVER = "must be a string compatible with semver.org spec 2.0.0"
P = "a[k]"


def check(value: Document) -> list[Cause]:
    return list(attributes.check({"k": value}, "a"))


@pytest.mark.parametrize(
    "value",
    [
        {"int": 0},
        {"bool": False},
        {"string": ""},
        {"string": "x" * 64},
        {"string": "ä" * 32},
        {"version": "1.2.3-rc.1+b"},
        {"ints": [1, 2]},
        {"bools": [True]},
        {"strings": ["a", ""]},
        {"versions": ["1.0.0"]},
        {"int": 1, "unknownMember": 2},
    ],
)
def test_one_value_or_one_list_is_accepted(value: Document) -> None:
    assert check(value) == []


@pytest.mark.spec("AL-2.22")
@pytest.mark.parametrize(
    ("value", "causes"),
    [
        ({}, [invalid(P, "", ONE)]),
        ({"int": 1, "string": "x"}, [invalid(P, {"int": 1, "string": "x"}, ONE)]),
        ({"int": 1, "ints": [1]}, [invalid(P, {"int": 1, "ints": [1]}, ONE)]),
        ({"strings": []}, [invalid(f"{P}.strings", [], "must not be empty if specified")]),
        ({"string": "x" * 65}, [too_long(f"{P}.string", 64)]),
        ({"string": "ä" * 33}, [too_long(f"{P}.string", 64)]),
        ({"version": "1.2"}, [invalid(f"{P}.version", "1.2", SEMVER)]),
        ({"version": "x" * 65}, [invalid(f"{P}.version", "x" * 65, SEMVER), too_long(f"{P}.version", 64)]),
        ({"strings": ["a", "x" * 65]}, [too_long(f"{P}.strings[1]", 64)]),
        ({"versions": ["v1"]}, [invalid(f"{P}.versions[0]", "v1", SEMVER)]),
    ],
)
def test_a_bad_value_is_refused(value: Document, causes: list[Cause]) -> None:
    assert check(value) == causes


@pytest.mark.spec("AL-2.21")
@pytest.mark.parametrize("key", ["", "a-b", "x" * 33, "/a", "a/", "a_b/c", "x" * 64 + "/a"])
def test_a_bad_key_is_reported_at_the_map(key: str) -> None:
    known: set[str] = set()
    causes = list(attributes.check_keys({key: 1}.keys(), "a", known))
    assert causes == list(name_errors("a", key, names.device_qualified_name)) != []
    assert {cause.field for cause in causes} == {"a"}
    assert known == set()


@pytest.mark.spec("AL-2.21")
def test_a_key_that_is_too_long_is_reported_as_too_long() -> None:
    assert list(attributes.check_keys({"x" * 33: 1}.keys(), "a", set())) == [too_long("a", 32)]


@pytest.mark.spec("AL-2-gap.5")
def test_a_key_with_two_slashes_is_refused() -> None:
    (cause,) = attributes.check_keys({"a.io/b/c": 1}.keys(), "a", set())
    assert cause == invalid("a", "a.io/b/c", "must be a name, or a domain and a name separated by one slash")


def test_good_keys_are_remembered() -> None:
    known: set[str] = set()
    assert list(attributes.check_keys({"model": 1, "a.io/numa": 2}.keys(), "a", known)) == []
    assert known == {"model", "a.io/numa"}


def test_the_elements_of_lists_are_counted_singly() -> None:
    given: dict[str, Document] = {"a": {"int": 1}, "b": {"ints": [1, 2, 3]}, "c": {}}
    assert attributes.count_values(given) == 5
    assert attributes.has_lists(given)
    assert not attributes.has_lists({"a": {"int": 1}})
