import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.library.string_format import format_text
from devlet.cel.types import INT
from devlet.cel.values import NONE, CelError, CostExceeded, Duration, Timestamp, Uint
from devlet.objects.values.quantity import Quantity

NOT_A_STRING = (
    "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
    "types, durations, and timestamps, was given {}"
)


@pytest.mark.parametrize(
    ("text", "args", "result"),
    [
        ("", [], ""),
        ("100%%", [], "100%"),
        ("äöü %s ☃", [1], "äöü 1 ☃"),
        ("%s %s %s", ["a", True, None], "a true null"),
        ("%s", [1.0], "1"),
        ("%s", [1e8], "1e+08"),
        ("%s", [[1.0, math.nan, math.inf]], '[1.000000, "NaN", "+Inf"]'),
        ("%s", [{"b": b"x\0", "a": [1, "x"]}], '{"a":[1, "x"], "b":b"x\\x00"}'),
        ("%s", [{2: 1, 10: 1}], "{10:1, 2:1}"),
        ("%s %s", [Timestamp(0), Duration(10**9)], "1970-01-01T00:00:00Z 1s"),
        ("%s", [[Timestamp(0), Duration(10**9)]], '[timestamp("1970-01-01T00:00:00Z"), duration("1s")]'),
        ("%s %s", [INT, [INT]], "int [int]"),
        ("%d %d", [-5, Uint(5)], "-5 5"),
        ("%x %X %x", ["hello", b"\xff", -255], "68656c6c6f FF -ff"),
        ("%b %b %o", [True, -5, 8], "1 -101 10"),
        ("%.3d|%.2s", [1, "abc"], "1|abc"),
        ("%f", [-1234567.5], "-1,234,567.500000"),
        ("%.0f %.0f %.0f", [0.5, 1.5, 2.5], "0 2 2"),
        ("%.2f", [999.999], "1,000.00"),
        ("%.2f", [2.675], "2.67"),
        ("%f", [-0.0], "0.000000"),
        ("%.1f", [-0.04], "-0.0"),
        ("%f %f %f", ["NaN", "Infinity", "-Infinity"], "NaN ∞ -∞"),
        ("%.20f", [0.1], "0.10000000000000000555"),
        ("%e", [1052.032911275], "1.052033×10⁰³"),
        ("%e", [-0.0000123], "-1.230000×10⁻⁰⁵"),
        ("%.2e|%.15e", [1.0, 1.0], "1.000000×10⁰⁰|  1.000000×10⁰⁰"),
        ("%e", [math.nan], "   NaN"),
        ("%s", [1, 2], "1"),
    ],
)
def test_values_are_put_into_the_text(text: str, args: list[Any], result: str) -> None:
    assert format_text(text, args) == result


@pytest.mark.parametrize(
    ("text", "args", "problem"),
    [
        ("%s %s", [1], "index 1 out of range"),
        ("%", [1], "unexpected end of string"),
        ("%.", [1], "could not parse formatting clause: error while parsing precision: "
                    "could not find end of precision specifier"),
        ("%.f", [1.0], "could not parse formatting clause: error while parsing precision: error while converting "
                       'precision to integer: strconv.Atoi: parsing "": invalid syntax'),
        ("%z", [1], 'could not parse formatting clause: unrecognized formatting clause "z"'),
        ("%ä", [1], 'could not parse formatting clause: unrecognized formatting clause "Ã"'),
        ("%d", ["x"], "error during formatting: decimal clause can only be used on integers, was given string"),
        ("%d", [True], "error during formatting: decimal clause can only be used on integers, was given bool"),
        ("%f", ["1.5"], "error during formatting: fixed-point clause can only be used on doubles, was given string"),
        ("%e", [1], "error during formatting: scientific clause can only be used on doubles, was given int"),
        ("%b", ["x"], "error during formatting: only integers and bools can be formatted as binary, was given string"),
        ("%x", [1.5], "error during formatting: only integers, byte buffers, and strings can be formatted as hex, "
                      "was given double"),
        ("%o", [True], "error during formatting: octal clause can only be used on integers, was given bool"),
        ("%s", [Quantity.parse("1")], NOT_A_STRING.format("kubernetes.Quantity")),
        ("%s", [NONE], NOT_A_STRING.format("optional_type")),
        ("%s", [[NONE]], "error during formatting: no formatting function for optional_type"),
        ("%s", [{1.5: 1}], "error during formatting: no formatting function for map key of type double"),
        ("%s", [b"\xff"], "error during formatting: could not convert argument "
                          '"invalid UTF-8 in bytes, cannot convert to string" to string'),
    ],
)  # fmt: skip
def test_what_cannot_be_formatted_is_explained(text: str, args: list[Any], problem: str) -> None:
    with pytest.raises(CelError) as caught:
        format_text(text, args)
    assert caught.value.message == problem


def test_a_precision_out_of_range_is_an_error_and_a_large_one_harmless() -> None:
    with pytest.raises(CelError, match='parsing "99999999999999999999": value out of range'):
        format_text("%.99999999999999999999f", [1.0])
    assert len(format_text("%.1000000f", [0.1])) == 66
    assert len(format_text("%.1000000e", [0.1])) == 16960


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 40))
def test_a_fixed_point_number_is_rounded_as_python_rounds(number: float, digits: int) -> None:
    expected = f"{number if number else 0.0:,.{digits}f}"
    assert format_text(f"%.{digits}f", [number]) == expected


@given(st.text(), st.lists(st.one_of(st.text(), st.integers(), st.booleans(), st.floats()), max_size=3))
def test_any_text_is_formatted_or_refused(text: str, args: list[Any]) -> None:
    try:
        assert isinstance(format_text(text, args), str)
    except CelError as error:
        assert error.message


def test_a_value_that_holds_itself_many_times_is_not_written_out() -> None:
    value: list[object] = [1]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(CostExceeded):
        format_text("%s", [value])
