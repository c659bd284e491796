import math
from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel import operators as op
from devlet.cel.values import NONE, UINT_MAX, Duration, Optional, Uint
from devlet.objects.values.quantity import Quantity

Errors = Callable[..., str]
QUANTITY = Quantity.parse("1")


class Defaults(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        return {}


class Device:
    model = "x"


def test_size_counts_code_points_bytes_elements_and_entries(error_of: Errors) -> None:
    assert [op.size(value) for value in ("ä☃", b"abc", [1], (1, 2), {"a": 1})] == [2, 3, 1, 2, 1]
    assert error_of(op.size, 1) == "no such overload: size"
    assert error_of(op.size, Duration(1)) == "no such overload"


def test_in_a_list_what_cannot_be_compared_is_not_there() -> None:
    assert op.contains(1, [QUANTITY, 1.0])
    assert not op.contains(QUANTITY, [1, "a"])


@pytest.mark.parametrize(
    ("container", "key", "text"),
    [
        ([1], 5, "index out of bounds: 5"),
        ([1], -1, "index out of bounds: -1"),
        ([1], 1.5, "unsupported index value 1.5 in list"),
        ([1], Uint(UINT_MAX), f"unsupported index value {UINT_MAX} in list"),
        ([1], math.inf, "unsupported index value +Inf in list"),
        ([1], "a", "unsupported index type 'string' in list"),
        ([1], True, "unsupported index type 'bool' in list"),
        ({"a": 1}, "b", "no such key: b"),
        ({1: 1}, 2.5, "no such key: 2.5"),
        ({1: 1}, True, "no such key: true"),
        (5, "x", "no such key: x"),
        ({"a": 1}, None, "invalid qualifier type: types.Null"),
        ([1], [1], "invalid qualifier type: *types.baseList"),
    ],
)
def test_an_index_that_is_not_there_is_an_error(error_of: Errors, container: object, key: object, text: str) -> None:
    assert error_of(op.index, container, key) == text


@pytest.mark.spec("DA-4.1a")
def test_a_map_with_defaults_has_every_key_except_for_in_and_size() -> None:
    domains = Defaults(a={"x": 1})
    assert op.index(domains, "b") == {}
    assert op.select(domains, "b") == {}
    assert op.optional_index(domains, "b") == Optional({})
    assert op.has(domains, "b")
    assert not op.contains("b", domains)
    assert op.size(domains) == 1


def test_fields_of_maps_optionals_and_objects(error_of: Errors) -> None:
    assert op.select({"a": 1}, "a") == 1
    assert error_of(op.select, {"a": 1}, "b") == "no such key: b"
    assert op.select(Device(), "name", "model") == "x"
    assert op.select(Optional({"a": 1}), "a") == Optional(1)
    assert op.select(NONE, "a") == NONE
    assert op.optional_select(Device(), "name", "model") == Optional("x")
    assert op.optional_select({"a": 1}, "b") == NONE
    assert op.index(Optional([1]), 0) == Optional(1)
    assert op.optional_index(Optional([1]), 3) == NONE


def test_has_is_false_of_what_has_no_fields(error_of: Errors) -> None:
    assert op.has({"a": 1}, "a") and op.has(Device(), "name", "model")
    assert not op.has({"a": 1}, "b") and not op.has(5, "b")
    assert error_of(op.has, [1], "b") == "unsupported index type 'string' in list"
    assert error_of(op.optional_index, {}, b"") == "invalid qualifier type: types.Bytes"
