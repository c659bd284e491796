import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel import operators as op
from devlet.cel.types import DOUBLE, INT, list_of
from devlet.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    CelError,
    CostExceeded,
    Duration,
    Optional,
    Timestamp,
    Uint,
)
from devlet.objects.values import semver
from devlet.objects.values.quantity import Quantity

ints = st.integers(INT_MIN, INT_MAX)
uints = st.integers(0, UINT_MAX).map(Uint)
QUANTITY = Quantity.parse("1")
VERSION = semver.parse("1.2.3")


class Defaults(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        return {}


class Device:
    model = "x"


def error_of(call: Callable[..., object], *args: object) -> str:
    with pytest.raises(CelError) as caught:
        call(*args)
    return caught.value.message


# Equality


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (1, Uint(1)),
        (2**53 + 1, float(2**53)),
        ([1, [2.0]], (1, [2])),
        ({"a": 1}, {"a": Uint(1)}),
        ({1.0: "x"}, {1: "x"}),
        (None, None),
        (Optional(1), Optional(1.0)),
        (NONE, NONE),
        (list_of(INT), list_of(DOUBLE)),
        (QUANTITY, Quantity.parse("1000m")),
        (VERSION, semver.parse("1.2.3+build")),
        (Timestamp(5, 3600), Timestamp(5)),
        (b"a", b"a"),
    ],
)
def test_values_of_different_types_can_be_equal(a: object, b: object) -> None:
    assert op.equal(a, b)
    assert not op.not_equal(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True),
        (0, False),
        (0.0, False),
        (1, "1"),
        ("a", b"a"),
        (math.nan, math.nan),
        (math.nan, 1),
        (1, math.nan),
        ([1], [1, 2]),
        ([1], {"a": 1}),
        ({1: 1}, {True: 1}),
        ({1: "x"}, {1.0: "x"}),
        ({"a": 1}, {"b": 1}),
        (None, 0),
        (0, None),
        (Optional(1), NONE),
        (Optional(1), 1),
        (INT, DOUBLE),
        (Duration(5), Timestamp(5)),
        (Device(), 1),
        ("a", VERSION),
        (1, QUANTITY),
        (QUANTITY, None),
    ],
)
def test_everything_else_is_not_equal_without_an_error(a: object, b: object) -> None:
    assert op.equal(a, b) is False
    assert op.not_equal(a, b)


@pytest.mark.spec("DA-4.3g")
@pytest.mark.parametrize("left", [QUANTITY, VERSION])
def test_a_quantity_or_version_left_of_another_type_is_an_error_but_not_equal(left: object) -> None:
    assert error_of(op.equal, left, "1") == "no such overload"
    assert op.equal("1", left) is False
    assert op.not_equal(left, "1") and op.not_equal("1", left)


def test_inside_of_a_list_or_map_what_cannot_be_compared_counts_as_equal() -> None:
    assert op.equal([QUANTITY], [1])
    assert op.equal({"a": VERSION}, {"a": 1})
    assert not op.equal([QUANTITY, 1], [1, 2])


def test_in_a_list_made_with_plus_what_cannot_be_compared_is_an_error() -> None:
    assert error_of(op.equal, op.add([QUANTITY], [1]), [1, 1]) == "no such overload"
    assert op.equal(op.add([QUANTITY], [1]), [1, 2]) is False


def test_an_optional_does_not_hide_the_error_of_its_value() -> None:
    assert error_of(op.equal, Optional(QUANTITY), Optional(None)) == "no such overload"


def test_a_map_with_defaults_on_the_right_has_every_key() -> None:
    assert op.equal({"a": {}}, Defaults(b={}))
    assert not op.equal(Defaults(b={}), {"a": {}})


# Order


@given(st.one_of(ints, uints, st.floats(allow_nan=False)), st.one_of(ints, uints, st.floats(allow_nan=False)))
def test_numbers_are_ordered_as_doubles_as_soon_as_one_is_a_double(a: float, b: float) -> None:
    if float in (type(a), type(b)):
        expected = float(a) < float(b)
    else:
        expected = a < b
    assert op.less(a, b) == expected
    assert op.greater(b, a) == expected
    assert op.less_equals(b, a) == (not expected)
    assert op.greater_equals(a, b) == (not expected)


@given(st.text(), st.text())
def test_strings_are_ordered_as_their_utf8_bytes(a: str, b: str) -> None:
    encoded = [text.encode(errors="surrogatepass") for text in (a, b)]
    assert op.less(a, b) == (encoded[0] < encoded[1])


def test_bools_bytes_and_times_have_an_order() -> None:
    assert op.less(False, True)
    assert op.less(b"a", b"b")
    assert op.greater(Duration(2), Duration(1))
    assert op.less_equals(Timestamp(1), Timestamp(1))


def test_nan_cannot_be_ordered() -> None:
    for a, b in ((math.nan, 1), (1, math.nan), (math.nan, "a")):
        assert error_of(op.less, a, b) == "NaN values cannot be ordered"


@pytest.mark.parametrize(
    ("call", "a", "b", "text"),
    [
        (op.less, 1, "a", "no such overload"),
        (op.less, True, 1, "no such overload"),
        (op.less, Duration(1), Timestamp(1), "no such overload"),
        (op.less, [1], [2], "no such overload: _<_"),
        (op.greater_equals, None, None, "no such overload: _>=_"),
        (op.greater, QUANTITY, QUANTITY, "no such overload: _>_"),
        (op.less_equals, {}, {}, "no such overload: _<=_"),
        (op.add, 1, 1.0, "no such overload"),
        (op.add, None, 1, "no such overload: _+_"),
        (op.add, "a", 1, "no such overload"),
        (op.add, [1], 1, "no such overload"),
        (op.add, Timestamp(1), Timestamp(1), "no such overload"),
        (op.subtract, "a", "a", "no such overload"),
        (op.subtract, [1], [1], "no such overload: _-_"),
        (op.subtract, Duration(1), Timestamp(1), "no such overload"),
        (op.subtract, 1.0, 1, "no such overload"),
        (op.multiply, True, True, "no such overload: _*_"),
        (op.multiply, 1, Uint(1), "no such overload"),
        (op.divide, "a", 1, "no such overload"),
        (op.divide, 1, 1.0, "no such overload"),
        (op.modulo, 1.0, 1.0, "no such overload: _%_"),
        (op.modulo, 1, 1.0, "no such overload"),
        (op.contains, 1, 1, "no such overload"),
    ],
)
def test_errors_name_the_operator_only_if_the_left_type_has_no_operators(
    call: Callable[..., object], a: object, b: object, text: str
) -> None:
    assert error_of(call, a, b) == text


# Arithmetic


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@given(ints, ints)
def test_integers_compute_as_big_ones_or_overflow(a: int, b: int) -> None:
    expected = {op.add: a + b, op.subtract: a - b, op.multiply: a * b}
    if b:
        expected[op.divide] = truncated(a, b)
    for call, result in expected.items():
        if INT_MIN <= result <= INT_MAX:
            assert call(a, b) == result and type(call(a, b)) is int
        else:
            assert error_of(call, a, b) == "integer overflow"
    if b and (a, b) != (INT_MIN, -1):
        assert op.modulo(a, b) == a - b * truncated(a, b)


@given(uints, uints)
def test_unsigned_integers_compute_as_big_ones_or_overflow(a: Uint, b: Uint) -> None:
    expected = {op.add: int(a) + b, op.subtract: int(a) - b, op.multiply: int(a) * b}
    if b:
        expected |= {op.divide: int(a) // b, op.modulo: int(a) % b}
    for call, result in expected.items():
        if 0 <= result <= UINT_MAX:
            assert call(a, b) == result and type(call(a, b)) is Uint
        else:
            assert error_of(call, a, b) == "unsigned integer overflow"


@given(st.floats(), st.floats())
def test_doubles_never_fail(a: float, b: float) -> None:
    for call in (op.add, op.subtract, op.multiply, op.divide):
        assert type(call(a, b)) is float


def test_division_by_zero_is_an_error_for_integers_and_infinite_for_doubles() -> None:
    assert error_of(op.divide, 1, 0) == "division by zero"
    assert error_of(op.divide, Uint(1), Uint(0)) == "division by zero"
    assert error_of(op.modulo, 1, 0) == "modulus by zero"
    assert op.divide(1.0, 0.0) == math.inf
    assert op.divide(1.0, -0.0) == -math.inf
    assert math.isnan(op.divide(0.0, 0.0))


def test_the_smallest_integer_has_no_opposite() -> None:
    for call, args in ((op.negate, (INT_MIN,)), (op.divide, (INT_MIN, -1)), (op.modulo, (INT_MIN, -1))):
        assert error_of(call, *args) == "integer overflow"


def test_division_and_modulus_cut_towards_zero() -> None:
    assert (op.divide(-7, 2), op.modulo(-7, 2), op.modulo(7, -2)) == (-3, -1, 1)


def test_negation_is_for_numbers_that_have_a_sign() -> None:
    assert (op.negate(5), op.negate(1.5), op.negate(Duration(3))) == (-5, -1.5, Duration(-3))
    assert error_of(op.negate, True) == "no such overload"
    assert error_of(op.negate, Uint(1)) == "no such overload: -_"
    assert op.logical_not(False) is True
    assert error_of(op.logical_not, 1) == "no such overload"


@given(st.lists(st.integers()), st.lists(st.integers()))
def test_lists_strings_and_bytes_are_concatenated(a: list[int], b: list[int]) -> None:
    assert list(op.add(a, b)) == a + b
    assert op.add("a", "b") == "ab"
    assert op.add(b"a", b"b") == b"ab"


def test_times_stay_within_the_years_1_to_9999() -> None:
    last, first = Timestamp(op.TIMESTAMP_MAX), Timestamp(op.TIMESTAMP_MIN)
    assert error_of(op.add, last, Duration(1)) == "timestamp overflow"
    assert error_of(op.subtract, first, Duration(1)) == "timestamp overflow"
    assert error_of(op.subtract, first, Duration(INT_MIN)) == "integer overflow"
    assert error_of(op.subtract, last, first) == "integer overflow"
    assert error_of(op.add, Duration(INT_MAX), Duration(1)) == "integer overflow"
    assert op.add(Duration(5), Timestamp(1)) == op.add(Timestamp(1), Duration(5)) == Timestamp(6)
    assert op.subtract(Timestamp(-1), Timestamp(2)) == Duration(-3)
    assert op.subtract(Duration(5), Duration(7)) == Duration(-2)


def test_a_moved_time_stays_in_its_zone() -> None:
    assert op.add(Timestamp(0, 7200), Duration(1)).offset == 7200


# Containers


def test_size_counts_code_points_bytes_elements_and_entries() -> None:
    assert [op.size(value) for value in ("ä☃", b"abc", [1], (1, 2), {"a": 1})] == [2, 3, 1, 2, 1]
    assert error_of(op.size, 1) == "no such overload: size"
    assert error_of(op.size, Duration(1)) == "no such overload"


@pytest.mark.parametrize(
    ("key", "found"),
    [(1, True), (1.0, True), (Uint(1), True), (True, False), ("1", False), (1.5, False), (None, False), (b"1", False)],
)
def test_keys_are_found_by_value_but_true_is_not_one(key: object, found: bool) -> None:
    assert op.contains(key, {1: "x"}) is found
    assert (op.find({1: "x"}, key) is not op.ABSENT) is found


def test_a_double_as_a_key_is_found_by_doubles_only() -> None:
    assert op.contains(1.0, {1.0: "x"})
    assert not op.contains(1, {1.0: "x"})
    assert not op.contains(1, {True: "x"})
    assert op.contains(True, {True: "x"})


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
def test_an_index_that_is_not_there_is_an_error(container: object, key: object, text: str) -> None:
    assert error_of(op.index, container, key) == text


def test_whole_numbers_of_any_type_are_an_index() -> None:
    assert [op.index([5, 6], key) for key in (1, 1.0, Uint(1))] == [6, 6, 6]


@pytest.mark.spec("DA-4.1a")
def test_a_map_with_defaults_has_every_key_except_for_in_and_size() -> None:
    domains = Defaults(a={"x": 1})
    assert op.index(domains, "b") == {}
    assert op.select(domains, "b") == {}
    assert op.optional_index(domains, "b") == Optional({})
    assert op.has(domains, "b")
    assert not op.contains("b", domains)
    assert op.size(domains) == 1


def test_fields_of_maps_optionals_and_objects() -> None:
    assert op.select({"a": 1}, "a") == 1
    assert error_of(op.select, {"a": 1}, "b") == "no such key: b"
    assert op.select(Device(), "name", "model") == "x"
    assert op.select(Optional({"a": 1}), "a") == Optional(1)
    assert op.select(NONE, "a") == NONE
    assert op.optional_select(Device(), "name", "model") == Optional("x")
    assert op.optional_select({"a": 1}, "b") == NONE
    assert op.index(Optional([1]), 0) == Optional(1)
    assert op.optional_index(Optional([1]), 3) == NONE


def test_has_is_false_of_what_has_no_fields() -> None:
    assert op.has({"a": 1}, "a") and op.has(Device(), "name", "model")
    assert not op.has({"a": 1}, "b") and not op.has(5, "b")
    assert error_of(op.has, [1], "b") == "unsupported index type 'string' in list"
    assert error_of(op.optional_index, {}, b"") == "invalid qualifier type: types.Bytes"


def test_lists_that_double_again_and_again_end_in_the_cost_limit() -> None:
    values: list[object] = [1, 2]
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        for _ in range(40):
            values = op.add(values, values)


@pytest.mark.parametrize("wrap", [lambda v: [v, v], lambda v: {"a": v, "b": v}, lambda v: [Optional(v), v]])
def test_comparing_values_with_many_repeated_parts_is_limited(wrap: Callable[[object], object]) -> None:
    a: object = [1]
    b: object = [1]
    for _ in range(60):
        a, b = wrap(a), wrap(b)
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        op.equal(a, b)
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        op.not_equal(a, b)
