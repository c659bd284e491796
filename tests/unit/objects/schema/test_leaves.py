import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.schema import leaves
from devlet.objects.schema.leaves import CONVERT, Mismatch

scalars: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just([]) | st.just({})
)


@given(st.sampled_from(sorted(CONVERT)), scalars.filter(lambda value: value is not None))
def test_a_value_is_taken_or_refused_and_what_is_taken_stays(form: str, value: object) -> None:
    try:
        taken = CONVERT[form](value, [])
    except Mismatch as refused:
        assert refused.text().startswith("json: ")
    else:
        assert taken is None or repr(CONVERT[form](taken, [])) == repr(taken)


@pytest.mark.parametrize(
    ("value", "name"),
    [(True, "bool"), (1, "number"), (1.5, "number"), ("", "string"), ([], "array"), ({}, "object"), (None, "null")],
)
def test_values_are_called_what_json_calls_them(value: object, name: str) -> None:
    assert leaves.json_type(value) == name


@pytest.mark.parametrize(
    ("convert", "low", "high"), [(leaves.int32, -(2**31), 2**31 - 1), (leaves.int64, -(2**63), 2**63 - 1)]
)
def test_integers_reach_to_their_bounds_and_no_further(
    convert: Callable[[Any, list[str]], int], low: int, high: int
) -> None:
    assert (convert(low, []), convert(high, [])) == (low, high)
    for beyond in (low - 1, high + 1):
        with pytest.raises(Mismatch) as caught:
            convert(beyond, [])
        assert "out of range for the object" in caught.value.text()


@given(st.binary())
def test_base64_of_any_bytes_is_taken_as_it_is(data: bytes) -> None:
    text = leaves.base64(base64.b64encode(data).decode(), [])
    assert base64.b64decode(text) == data


def test_a_place_in_a_list_and_in_a_map_is_part_of_the_path() -> None:
    numbers = leaves.map_of(leaves.list_of(leaves.int32, int), list)
    assert numbers({"a": [1, None], "b": None}, []) == {"a": [1, 0], "b": []}
    with pytest.raises(Mismatch) as caught:
        numbers({"a": [1], "b": [1, 2, "x"]}, [])
    assert caught.value.text() == "json: cannot unmarshal string into field b[2] of type int32"


def test_values_python_has_and_json_has_not_are_refused() -> None:
    with pytest.raises(Mismatch):
        leaves.anything({"a": {1, 2}}, [])
    with pytest.raises(Mismatch):
        leaves.anything({1: "a"}, [])
