import math
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from devlet.cel import operators as op
from devlet.cel.values import INT_MAX, INT_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, UINT_MAX, Duration, Timestamp, Uint

Errors = Callable[..., str]
ints = st.integers(INT_MIN, INT_MAX)
uints = st.integers(0, UINT_MAX).map(Uint)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@given(ints, ints)
def test_integers_compute_as_big_ones_or_overflow(error_of: Errors, a: int, b: int) -> None:
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
def test_unsigned_integers_compute_as_big_ones_or_overflow(error_of: Errors, a: Uint, b: Uint) -> None:
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


def test_division_by_zero_is_an_error_for_integers_and_infinite_for_doubles(error_of: Errors) -> None:
    assert error_of(op.divide, 1, 0) == "division by zero"
    assert error_of(op.divide, Uint(1), Uint(0)) == "division by zero"
    assert error_of(op.modulo, 1, 0) == "modulus by zero"
    assert op.divide(1.0, 0.0) == math.inf
    assert op.divide(1.0, -0.0) == -math.inf
    assert math.isnan(op.divide(0.0, 0.0))


def test_the_smallest_integer_has_no_opposite(error_of: Errors) -> None:
    for call, args in ((op.negate, (INT_MIN,)), (op.divide, (INT_MIN, -1)), (op.modulo, (INT_MIN, -1))):
        assert error_of(call, *args) == "integer overflow"


def test_division_and_modulus_cut_towards_zero() -> None:
    assert (op.divide(-7, 2), op.modulo(-7, 2), op.modulo(7, -2)) == (-3, -1, 1)


def test_negation_is_for_numbers_that_have_a_sign(error_of: Errors) -> None:
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


def test_times_stay_within_the_years_1_to_9999(error_of: Errors) -> None:
    last, first = Timestamp(TIMESTAMP_MAX), Timestamp(TIMESTAMP_MIN)
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
