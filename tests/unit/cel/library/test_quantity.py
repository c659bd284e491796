"""Functions on quantities."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devlet.objects.values.quantity import Quantity

_NUMBERS = st.integers(-(10**12), 10**12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(_NUMBERS, _NUMBERS)
def test_whole_quantities_compute_like_integers(value: Callable[..., Any], a: int, b: int) -> None:
    x, y = Quantity.of(a), Quantity.of(b)
    assert value("x.add(y).asInteger()", x=x, y=y) == a + b
    assert value("x.sub(y).asInteger()", x=x, y=y) == a - b
    assert value("x.add(n).sub(n) == x", x=x, n=b)
    assert value("x.compareTo(y)", x=x, y=y) == (a > b) - (a < b)
    assert value("[x.isGreaterThan(y), x.isLessThan(y), x == y]", x=x, y=y) == [a > b, a < b, a == b]
    assert value("x.asApproximateFloat()", x=x) == float(a)


def test_texts_become_quantities(value: Callable[..., Any], error: Callable[..., str]) -> None:
    assert value('quantity("1.5Gi")') == Quantity.parse("1536Mi")
    assert error('quantity("200K")') == "unable to parse quantity's suffix"
    assert error('quantity("Three")').startswith("quantities must match the regular expression '^([+-]?[0-9.]+)")
    texts = ("1.3G", "1,3G", "200K", "Mi", "", "-1m")
    assert [value("isQuantity(x)", x=text) for text in texts] == [True, False, False, True, False, True]


@pytest.mark.spec("DA-4.3l")
def test_only_what_was_written_as_an_integer_is_one(value: Callable[..., Any], error: Callable[..., str]) -> None:
    assert value('quantity("50k").asInteger() == 50000 && quantity("50k").isInteger()')
    assert not value('quantity("1.0").isInteger() || quantity("1000m").isInteger()')
    assert error('quantity("1.5").asInteger()') == "cannot convert value to integer"


def test_sign_is_a_function(value: Callable[..., Any]) -> None:
    assert value('[sign(quantity("2")), sign(quantity("0")), sign(quantity("-1m"))]') == [1, 0, -1]


@pytest.mark.spec("DA-4.3m")
def test_a_sum_is_equal_from_the_left_only(value: Callable[..., Any], error: Callable[..., str]) -> None:
    assert value('quantity("1").add(quantity("2")) == quantity("3")')
    assert error('quantity("3") == quantity("1").add(quantity("2"))') == "no such overload"
    assert value('quantity("3").compareTo(quantity("1").add(2)) == 0')


def test_reading_a_text_costs_by_its_length(run: Callable[..., Any]) -> None:
    assert run("isQuantity(x)", x="1" * 25).cost == 1 + 3
