"""Quantities as the reference holds them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel import amounts
from devlet.cel.operators import equal
from devlet.cel.values import INT_MAX, CelError
from devlet.errors import InvalidInput
from devlet.objects.values.quantity import Quantity

_TEXTS = st.builds(
    lambda sign, whole, decimals, suffix: f"{sign}{whole}{decimals}{suffix}",
    st.sampled_from(("", "-", "+")),
    st.integers(0, 10**20).map(str),
    st.one_of(st.just(""), st.integers(0, 10**6).map(lambda n: f".{n}")),
    st.sampled_from(("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2")),
)


@pytest.mark.spec("DA-4.3l")
@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("0", 0),
        ("12", 12),
        ("1k", 1000),
        ("1e3", 1000),
        ("2Gi", 2**31),
        ("Mi", 0),
        ("-3", -3),
        ("999999999999999999", 10**18 - 1),
        ("1.0", None),
        ("1000m", None),
        ("1.5Gi", None),
        ("1Ei", None),
        ("9223372036854775807", None),
        ("99999999999999999999", None),
        ("100E", None),
    ],
)
def test_a_quantity_is_an_integer_only_if_it_was_written_as_one(text: str, integer: int | None) -> None:
    assert amounts.read(text).exact_int64() == integer


@given(_TEXTS)
def test_an_amount_has_the_value_and_the_text_of_the_quantity(text: str) -> None:
    amount, quantity = amounts.read(text), Quantity.parse(text)
    assert (amount.nano, str(amount)) == (quantity.nano, str(quantity))
    assert amount.unscaled * 10 ** (amount.exponent + 9) == amount.nano


@given(_TEXTS, _TEXTS)
def test_sums_and_differences_are_exact(a: str, b: str) -> None:
    x, y = amounts.read(a), amounts.read(b)
    for result, nano in ((amounts.add(x, y), x.nano + y.nano), (amounts.subtract(x, y), x.nano - y.nano)):
        assert result.nano == nano == result.unscaled * 10 ** (result.exponent + 9)


@given(_TEXTS)
def test_the_approximate_float_is_near_the_value(text: str) -> None:
    amount = amounts.read(text)
    assert amount.approximate_float() == pytest.approx(float(Quantity.parse(text)), rel=1e-15)


def test_a_float_that_would_be_too_large_is_infinite() -> None:
    assert amounts.read("1e400").approximate_float() == float("inf")
    assert amounts.read("-1e400").approximate_float() == float("-inf")
    assert amounts.read("9" * 400).approximate_float() == float("inf")
    assert amounts.read("-" + "9" * 400).approximate_float() == float("-inf")


def test_a_sum_beyond_64_bits_is_no_integer_any_more() -> None:
    big = amounts.whole(INT_MAX)
    assert big.exact_int64() == INT_MAX
    assert amounts.add(big, amounts.whole(1)).exact_int64() is None
    assert amounts.subtract(amounts.add(big, amounts.whole(1)), amounts.whole(2)).exact_int64() is None


def test_a_quantity_of_the_host_counts_as_its_canonical_text() -> None:
    assert amounts.amount_of(Quantity.parse("1000m")).exact_int64() == 1
    assert amounts.amount_of(Quantity.parse("1500m")).exact_int64() is None
    assert amounts.read("1e-3").exponent == -3


@pytest.mark.spec("DA-4.3m")
def test_the_result_of_arithmetic_cannot_stand_on_the_right_of_an_equation() -> None:
    three, total = amounts.read("3"), amounts.add(amounts.read("1"), amounts.read("2"))
    assert equal(total, three)
    for left in (three, total, Quantity.parse("3")):
        with pytest.raises(CelError, match=r"^no such overload$"):
            equal(left, total)


def test_an_invalid_quantity_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="quantities must match"):
        amounts.read("Three")
