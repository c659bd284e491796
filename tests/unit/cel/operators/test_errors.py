from collections.abc import Callable

import pytest

from devlet.cel import operators as op
from devlet.cel.values import Duration, Timestamp, Uint
from devlet.objects.values.quantity import Quantity

Errors = Callable[..., str]
QUANTITY = Quantity.parse("1")


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
    error_of: Errors, call: Callable[..., object], a: object, b: object, text: str
) -> None:
    assert error_of(call, a, b) == text
