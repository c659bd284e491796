import math
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from devlet.cel import operators as op
from devlet.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, Uint

Errors = Callable[..., str]
ints = st.integers(INT_MIN, INT_MAX)
uints = st.integers(0, UINT_MAX).map(Uint)


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


def test_nan_cannot_be_ordered(error_of: Errors) -> None:
    for a, b in ((math.nan, 1), (1, math.nan), (math.nan, "a")):
        assert error_of(op.less, a, b) == "NaN values cannot be ordered"
