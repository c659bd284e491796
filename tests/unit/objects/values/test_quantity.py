"""Quantities. The tables were checked against Kubernetes v1.36."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.objects.values.quantity import BINARY_MAX, MAX_EXPONENT, MAX_TEXT, ZERO, Format, Quantity

CANONICAL = {
    # plain numbers
    "0": "0",
    "00": "0",
    "-0": "0",
    "0.0": "0",
    "1": "1",
    "+1": "1",
    "-1": "-1",
    "01": "1",
    "1.": "1",
    "100": "100",
    "999": "999",
    "1000": "1k",
    "1001": "1001",
    "1024": "1024",
    "10000": "10k",
    "1000000": "1M",
    "-2500": "-2500",
    # fractions
    "0.1": "100m",
    ".5": "500m",
    "1.5": "1500m",
    "1.500": "1500m",
    "1.0": "1",
    "0.001": "1m",
    "0.0001": "100u",
    "0.000001": "1u",
    "0.000000001": "1n",
    "12.345678901": "12345678901n",
    # decimal suffixes
    "1n": "1n",
    "1000n": "1u",
    "1u": "1u",
    "100m": "100m",
    "1000m": "1",
    "1500m": "1500m",
    "1k": "1k",
    "0.5k": "500",
    "1000k": "1M",
    "1.5M": "1500k",
    "8000M": "8G",
    "1G": "1G",
    "2T": "2T",
    "3P": "3P",
    "4E": "4E",
    "0.004E": "4P",
    # finer than nano: away from zero
    "0.5n": "1n",
    "-0.5n": "-1n",
    "0.0000000001": "1n",
    "1.0000000001": "1000000001n",
    "1e-10": "1e-9",
    # binary suffixes
    "1Ki": "1Ki",
    "0Ki": "0",
    "1.5Ki": "1536",
    "0.5Ki": "512",
    "1024Ki": "1Mi",
    "1025Ki": "1025Ki",
    "1000Ki": "1000Ki",
    "1Mi": "1Mi",
    "1.5Gi": "1536Mi",
    "2048Mi": "2Gi",
    "0.5Ti": "512Gi",
    "1Pi": "1Pi",
    "-1536Ki": "-1536Ki",
    # binary with a fraction falls back to decimal
    "1.1Ki": "1126400m",
    "0.0001Ki": "102400u",
    # the binary family ends at 2^63-1
    "7Ei": "7Ei",
    "8Ei": "9223372036854775807",
    "-100Ei": "-9223372036854775807",
    # exponents
    "1e3": "1e3",
    "1E3": "1e3",
    "1e+3": "1e3",
    "1000e0": "1e3",
    "1e0": "1",
    "1e4": "10e3",
    "12e-4": "1200e-6",
    "1.5e6": "1500e3",
    "100e-3": "100e-3",
    "1e100": "10e99",
    # above exa the suffix stays exa
    "1000E": "1000E",
    "1e-999999999999": "1e-9",
    # a bare suffix or sign is zero
    "Mi": "0",
    "E": "0",
    "e3": "0",
    "-": "0",
    ".": "0",
}

FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX = "unable to parse quantity's suffix"
NUMBER = "unable to parse numeric part of quantity"
REFUSED = {
    "": FORMAT,
    " 1": FORMAT,
    "1 ": FORMAT,
    "1\n": FORMAT,
    "1.2.3": FORMAT,
    "1,3G": FORMAT,
    "Three": FORMAT,
    "1e3k": FORMAT,
    "1e--3": FORMAT,
    "0x10": FORMAT,
    "１": FORMAT,
    "200K": SUFFIX,
    "1ki": SUFFIX,
    "1i": SUFFIX,
    "1mi": SUFFIX,
    "1e": SUFFIX,
    "1ee3": SUFFIX,
    "1-2": SUFFIX,
    "--1": SUFFIX,
    "1m3": SUFFIX,
    "Ei": NUMBER,
    "Pi": NUMBER,
    "e-10": NUMBER,
}

formats: st.SearchStrategy[Format] = st.sampled_from(("DecimalSI", "BinarySI", "DecimalExponent"))
nanos = st.integers(-(10**32), 10**32) | st.integers(-(2**63), 2**63).map(lambda n: n * 10**9)
quantities = st.builds(Quantity, nanos, formats)
numbers = st.from_regex(r"\A[+-]?[0-9]{1,20}(\.[0-9]{0,8})?\Z")
suffixes = st.sampled_from(("", *"numkMGTPE", "Ki", "Mi", "Gi", "e3", "E-2", "e+6"))


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_prints_itself_in_canonical_form(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


@pytest.mark.parametrize(("text", "error"), REFUSED.items())
def test_refuses_with_the_words_of_the_reference(text: str, error: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Quantity.parse(text)
    assert str(caught.value) == error


@pytest.mark.parametrize("text", ["1" * (MAX_TEXT + 1), f"1e{MAX_EXPONENT + 1}", "1e9999999999999999999"])
def test_refuses_exponents_that_would_take_too_long(text: str) -> None:
    with pytest.raises(InvalidInput):
        Quantity.parse(text)


def test_the_largest_exponent_is_read_and_printed() -> None:
    assert str(Quantity.parse(f"1e{MAX_EXPONENT}")) == f"10e{MAX_EXPONENT - 1}"


def test_reads_json_numbers() -> None:
    assert str(Quantity.parse(2)) == "2"
    assert str(Quantity.parse(0.5)) == "500m"
    assert Quantity.parse(1e22) == Quantity.parse("10000E")


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), 10**2000])
def test_refuses_json_values_that_are_not_amounts(value: float) -> None:
    with pytest.raises(InvalidInput):
        Quantity.parse(value)


def test_equality_is_by_value_whatever_the_text() -> None:
    same = {Quantity.parse(text) for text in ("1024Mi", "1Gi", "1073741824", "1073741824e0", "1.0Gi")}
    assert len(same) == 1
    assert Quantity.parse("1G") != Quantity.parse("1Gi")
    assert Quantity.parse("1") != 1


@pytest.mark.parametrize(
    ("left", "right", "total", "difference"),
    [
        ("1Gi", "512Mi", "1536Mi", "512Mi"),
        ("1", "1Ki", "1025", "-1023"),
        ("1Ki", "1", "1025", "1023"),
        ("0", "1Ki", "1Ki", "-1Ki"),
        ("0", "1e3", "1e3", "-1e3"),
        ("100m", "900m", "1", "-800m"),
        ("2Gi", "1.5Gi", "3584Mi", "512Mi"),
        ("8Ei", "8Ei", "18446744073709551614", "0"),
    ],
)
def test_arithmetic_keeps_the_family_of_the_left_unless_it_is_zero(
    left: str, right: str, total: str, difference: str
) -> None:
    a, b = Quantity.parse(left), Quantity.parse(right)
    assert str(a + b) == total
    assert str(a - b) == difference


@pytest.mark.parametrize(
    ("text", "whole", "milli", "exact"),
    [
        ("1500m", 2, 1500, None),
        ("-1500m", -2, -1500, None),
        ("1n", 1, 1, None),
        ("-1n", -1, -1, None),
        ("1.5Gi", 3 * 2**29, 3 * 2**29 * 1000, 3 * 2**29),
        ("0", 0, 0, 0),
    ],
)
def test_whole_numbers_are_rounded_away_from_zero(text: str, whole: int, milli: int, exact: int | None) -> None:
    quantity = Quantity.parse(text)
    assert (quantity.as_int(), quantity.as_milli(), quantity.exact_int()) == (whole, milli, exact)


def test_a_step_of_consumable_capacity_is_printed_in_binary() -> None:
    minimum, step, asked = (Quantity.parse(text).as_int() for text in ("0", "1Gi", "1500Mi"))
    steps = -(-(asked - minimum) // step)
    assert str(Quantity.of(minimum + steps * step, "BinarySI")) == "2Gi"


def test_multiplying_rounds_away_from_zero_to_a_nano() -> None:
    assert str(Quantity.parse("1Gi") * 3) == "3Gi"
    assert str(Quantity.parse("1n") * Fraction(1, 3)) == "1n"
    assert str(Quantity.parse("-1n") * Fraction(4, 3)) == "-2n"


def test_sign_and_zero() -> None:
    assert [Quantity.parse(text).sign for text in ("-1n", "0Ki", "1n")] == [-1, 0, 1]
    assert ZERO.is_zero
    assert not Quantity.parse("1n").is_zero
    assert -Quantity.parse("1Ki") == Quantity.parse("-1Ki")


def test_floats_are_near_or_infinite() -> None:
    assert float(Quantity.parse("1500m")) == 1.5
    assert float(Quantity.parse("-1e999")) == float("-inf")


def test_a_sum_may_exceed_what_can_be_written() -> None:
    assert Quantity.of(BINARY_MAX) + Quantity.of(BINARY_MAX) > Quantity.parse("8Ei")


@pytest.mark.parametrize("field", ["nano", "format", "text"])
def test_cannot_be_changed(field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(ZERO, field, 1)


def limited(quantity: Quantity) -> bool:
    return quantity.format != "BinarySI" or abs(quantity.nano) <= BINARY_MAX * 10**9


@given(quantities.filter(limited))
def test_the_text_reads_back_as_the_same_value_and_text(quantity: Quantity) -> None:
    again = Quantity.parse(str(quantity))
    assert again == quantity
    if quantity.format != "BinarySI" or not str(quantity)[-1].isdigit():  # without a suffix nobody can tell the format
        assert str(again) == str(quantity)


@given(numbers, suffixes)
def test_the_canonical_form_of_any_text_is_stable(number: str, suffix: str) -> None:
    text = str(Quantity.parse(number + suffix))
    assert str(Quantity.parse(text)) == text
    assert "." not in text


@given(numbers)
def test_a_number_is_its_exact_value(number: str) -> None:
    assert Quantity.parse(number).fraction == Fraction(number)


@given(quantities, quantities)
def test_order_equality_and_hash_agree_with_fractions(a: Quantity, b: Quantity) -> None:
    assert (a < b, a <= b, a == b, a >= b, a > b) == (
        a.fraction < b.fraction,
        a.fraction <= b.fraction,
        a.fraction == b.fraction,
        a.fraction >= b.fraction,
        a.fraction > b.fraction,
    )
    assert a.compare(b) == (a > b) - (a < b)
    assert a != b or hash(a) == hash(b)


@given(quantities, quantities)
def test_arithmetic_agrees_with_fractions(a: Quantity, b: Quantity) -> None:
    assert (a + b).fraction == a.fraction + b.fraction
    assert (a - b).fraction == a.fraction - b.fraction
    assert a - b == a + -b


@given(st.text(max_size=12) | st.text("0159.+-eEinumkKMGTP", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except InvalidInput:
        return
    assert Quantity.parse(str(quantity)) == quantity
