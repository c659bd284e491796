import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.texts import double_text, key_text, plain_double_text

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (0.0, "0"),
        (-0.0, "-0"),
        (0.5, "0.5"),
        (123456.0, "123456"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (1e21, "1e+21"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (-1.5e300, "-1.5e+300"),
        (5e-324, "5e-324"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_a_double_gets_an_exponent_from_a_million_on(number: float, text: str) -> None:
    assert double_text(number) == text


@given(finite)
def test_both_texts_of_a_double_read_back_as_the_same_number(number: float) -> None:
    assert float(double_text(number)) == number
    assert float(plain_double_text(number)) == number
    assert "e" not in plain_double_text(number)


def test_the_plain_text_of_what_is_not_finite_is_its_name() -> None:
    assert plain_double_text(math.inf) == "+Inf"


def test_keys_are_shown_as_they_are_written() -> None:
    assert [key_text(key) for key in (True, False, 5, "a", 1.5)] == ["true", "false", "5", "a", "1.5"]
