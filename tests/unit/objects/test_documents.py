import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.documents import Document, copy, count_objects, newest, read_float, view

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_a_copy_is_equal_and_shares_nothing_that_can_change(value: object) -> None:
    made = copy(value)
    assert made == value
    assert not containers(made) & containers(value)


@given(JSON)
def test_objects_are_counted_at_every_depth(value: object) -> None:
    assert count_objects(value) == msgspec.json.encode(_without_strings(value)).count(b"{")


def _without_strings(value: object) -> object:
    if isinstance(value, dict):
        return {str(i): _without_strings(v) for i, v in enumerate(value.values())}
    if isinstance(value, list):
        return [_without_strings(v) for v in value]
    return None


def containers(value: object) -> set[int]:
    if isinstance(value, dict):
        return {id(value)}.union(*map(containers, value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*map(containers, value))
    return set()


class Named(msgspec.Struct):
    name: str
    count: int = 1


def test_a_view_knows_only_what_its_type_knows() -> None:
    assert view(Named, {"name": "a", "novelty": {}}) == Named("a", 1)
    with pytest.raises(msgspec.ValidationError):
        view(Named, {"name": 5})


def test_floats_are_read_as_python_reads_them_and_refused_out_of_range() -> None:
    assert [read_float(text) for text in ("1.5e300", "5e-324", "-0.1", "1e-400")] == [1.5e300, 5e-324, -0.1, 0.0]
    for text in ("1e999", "-1e999"):
        with pytest.raises(ValueError, match="out of range"):
            read_float(text)


def at(version: str) -> Document:
    return {"metadata": {"resourceVersion": version}}


def test_the_newest_document_is_the_later_one_unless_the_other_has_a_higher_version() -> None:
    old, new = at("9"), at("10")
    assert newest(None, old) is old
    assert newest(old, new) is new
    assert newest(new, old) is new


def test_the_later_of_two_documents_counts_as_newer_if_versions_are_not_numbers() -> None:
    one, other = at("b"), at("a")
    assert newest(one, other) is other
