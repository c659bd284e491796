import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.functions import UNBOUNDED, Range, SizedNode
from devlet.cel.library.conversions import LIBRARY, string_to_double, string_to_int, to_string
from devlet.cel.types import DOUBLE, INT, LIST, STRING, TYPE, list_of
from devlet.cel.values import INT_MAX, INT_MIN, UINT_MAX, CelError, Duration, Timestamp, Uint

OVERLOADS = {overload.id: overload for function in LIBRARY.functions for overload in function.overloads}
CALLS = {id: overload.call for id, overload in OVERLOADS.items()}


def sized(size: Range | None) -> SizedNode:
    return SizedNode(STRING, (), size)


@pytest.mark.parametrize(
    ("id", "value", "result"),
    [
        ("string_to_bool", "T", True),
        ("string_to_bool", "False", False),
        ("string_to_bytes", "ä", b"\xc3\xa4"),
        ("int64_to_double", 3, 3.0),
        ("string_to_double", "0x1p-2", 0.25),
        ("string_to_double", "1_000.5e0_1", 10005.0),
        ("string_to_double", "-INF", -math.inf),
        ("string_to_double", "1e-400", 0.0),
        ("uint64_to_double", Uint(3), 3.0),
        ("string_to_duration", "1s", Duration(10**9)),
        ("double_to_int64", -1.9, -1),
        ("duration_to_int64", Duration(5), 5),
        ("string_to_int64", "+5", 5),
        ("timestamp_to_int64", Timestamp(-500_000_000), -1),
        ("uint64_to_int64", Uint(7), 7),
        ("int64_to_timestamp", -1, Timestamp(-(10**9))),
        ("string_to_timestamp", "1970-01-01T00:00:01Z", Timestamp(10**9)),
        ("double_to_uint64", 2.9, Uint(2)),
        ("int64_to_uint64", 2, Uint(2)),
        ("string_to_uint64", "18446744073709551615", Uint(UINT_MAX)),
        ("bool_to_string", True, "true"),
        ("double_to_string", 1e6, "1e+06"),
        ("int64_to_string", -5, "-5"),
        ("uint64_to_string", Uint(5), "5"),
        ("bytes_to_string", "ä".encode(), "ä"),
        ("duration_to_string", Duration(1500000000), "1.5s"),
        ("timestamp_to_string", Timestamp(0, 3600), "1970-01-01T01:00:00+01:00"),
        ("to_dyn", 5, 5),
        ("type", 5, INT),
        ("type", [5], LIST),
        ("type", INT, TYPE),
    ],
)
def test_values_are_converted(id: str, value: Any, result: Any) -> None:
    converted = CALLS[id](value)
    assert converted == result
    assert type(converted) is type(result)


@pytest.mark.parametrize(
    ("id", "value", "text"),
    [
        ("string_to_int64", "1_0", "type conversion error from 'string' to 'int'"),
        ("string_to_int64", " 1", "type conversion error from 'string' to 'int'"),
        ("string_to_int64", "٣", "type conversion error from 'string' to 'int'"),
        ("string_to_int64", "9223372036854775808", "type conversion error from 'string' to 'int'"),
        ("string_to_int64", "9" * 5000, "type conversion error from 'string' to 'int'"),
        ("string_to_uint64", "+5", "type conversion error from 'string' to 'uint'"),
        ("string_to_double", "1e400", "type conversion error from 'string' to 'double'"),
        ("string_to_double", "0x1p99999", "type conversion error from 'string' to 'double'"),
        ("string_to_double", "+nan", "type conversion error from 'string' to 'double'"),
        ("string_to_double", "0x1.8", "type conversion error from 'string' to 'double'"),
        ("string_to_double", "1__0", "type conversion error from 'string' to 'double'"),
        ("string_to_double", ".", "type conversion error from 'string' to 'double'"),
        ("string_to_double", "1.0\n", "type conversion error from 'string' to 'double'"),
        ("string_to_bool", "tRUE", "type conversion error from 'string' to 'bool'"),
        ("string_to_duration", "1d", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("string_to_timestamp", "x", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        ("int64_to_duration", 5, "type conversion error from 'int' to 'google.protobuf.Duration'"),
        ("int64_to_timestamp", 253402300800, "timestamp overflow"),
        ("double_to_int64", 2.0**63, "integer overflow"),
        ("double_to_int64", -(2.0**63), "integer overflow"),
        ("double_to_int64", math.nan, "integer overflow"),
        ("double_to_uint64", -0.5, "unsigned integer overflow"),
        ("double_to_uint64", 2.0**64, "unsigned integer overflow"),
        ("int64_to_uint64", -1, "unsigned integer overflow"),
        ("uint64_to_int64", Uint(2**63), "integer overflow"),
        ("bytes_to_string", b"\xff", "invalid UTF-8 in bytes, cannot convert to string"),
    ],
)
def test_an_unsupported_conversion_is_an_error(id: str, value: Any, text: str) -> None:
    with pytest.raises(CelError) as caught:
        CALLS[id](value)
    assert caught.value.message == text


@given(st.integers(INT_MIN, INT_MAX))
def test_the_text_of_an_integer_reads_back(number: int) -> None:
    assert string_to_int(to_string(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_reads_back(number: float) -> None:
    assert string_to_double(to_string(number)) == number


@given(st.text(alphabet="0123456789+-._eExXpPnaifty "))
def test_a_text_is_a_double_or_an_error_but_nothing_else(text: str) -> None:
    try:
        assert isinstance(string_to_double(text), float)
    except CelError as error:
        assert error.message == "type conversion error from 'string' to 'double'"


def test_types_and_null_have_a_text_and_values_of_libraries_have_none() -> None:
    assert to_string(list_of(DOUBLE)) == "list"
    assert to_string(None) == "null"
    with pytest.raises(CelError, match="type conversion error from 'list' to 'string'"):
        to_string([])


def test_bytes_are_up_to_four_times_as_many_as_characters() -> None:
    to_bytes = OVERLOADS["string_to_bytes"]
    assert to_bytes.estimate and to_bytes.cost
    estimate = to_bytes.estimate(None, [sized(Range(1, 100))])
    assert estimate and (estimate.cost, estimate.size) == (Range(1, 10), Range(1, 400))
    assert to_bytes.cost(["a" * 25], b"") == 3


def test_characters_are_at_least_a_fourth_of_the_bytes() -> None:
    to_text = OVERLOADS["bytes_to_string"]
    assert to_text.estimate
    estimate = to_text.estimate(None, [sized(Range(9, 100))])
    assert estimate and (estimate.cost, estimate.size) == (Range(1, 10), Range(2, 100))
    unknown = to_text.estimate(None, [sized(None)])
    assert unknown and unknown.size == Range(0, UNBOUNDED)
