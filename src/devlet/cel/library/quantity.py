"""Quantities: `device.capacity["x"].memory.isGreaterThan(quantity("1Gi"))`.

Compare with `compareTo`, `isLessThan`, `isGreaterThan` or `==`; there is no `<` of quantities. `sign` is a function,
not a method: `sign(q)`.
"""

from collections.abc import Callable
from typing import Final

from devlet.cel import amounts
from devlet.cel.functions import Function, Library, Overload
from devlet.cel.library.ranges import one, scan, scan_cost
from devlet.cel.types import BOOL, DOUBLE, INT, QUANTITY, STRING, Type
from devlet.cel.values import CelError
from devlet.errors import InvalidInput
from devlet.objects.values.quantity import Quantity


def _quantity(text: str) -> Quantity:
    try:
        return amounts.read(text)
    except InvalidInput as e:
        raise CelError(str(e)) from e


def _is_quantity(text: str) -> bool:
    try:
        amounts.read(text)
    except InvalidInput:
        return False
    return True


def _as_integer(quantity: Quantity) -> int:
    number = amounts.amount_of(quantity).exact_int64()
    if number is None:
        raise CelError("cannot convert value to integer")
    return number


def _is_integer(quantity: Quantity) -> bool:
    return amounts.amount_of(quantity).exact_int64() is not None


def _as_approximate_float(quantity: Quantity) -> float:
    return amounts.amount_of(quantity).approximate_float()


def _reader(name: str, id: str, result: Type, call: Callable[[str], object]) -> Function:
    return Function(name, (Overload(id, (STRING,), result, call, estimate=scan(), cost=scan_cost()),))


def _method(id: str, params: tuple[Type, ...], result: Type, call: Callable[..., object]) -> Overload:
    return Overload(id, (QUANTITY, *params), result, call, is_member=True, estimate=one)


def _methods(name: str, *overloads: Overload) -> Function:
    return Function(name, overloads)


LIBRARY: Final = Library(
    "kubernetes.quantity",
    (
        _reader("quantity", "string_to_quantity", QUANTITY, _quantity),
        _reader("isQuantity", "is_quantity_string", BOOL, _is_quantity),
        Function("sign", (Overload("quantity_sign", (QUANTITY,), INT, lambda q: q.sign, estimate=one),)),
        _methods("isGreaterThan", _method("quantity_is_greater_than", (QUANTITY,), BOOL, lambda a, b: a.nano > b.nano)),
        _methods("isLessThan", _method("quantity_is_less_than", (QUANTITY,), BOOL, lambda a, b: a.nano < b.nano)),
        _methods("compareTo", _method("quantity_compare_to", (QUANTITY,), INT, Quantity.compare)),
        _methods("asApproximateFloat", _method("quantity_get_float", (), DOUBLE, _as_approximate_float)),
        _methods("asInteger", _method("quantity_get_int", (), INT, _as_integer)),
        _methods("isInteger", _method("quantity_is_integer", (), BOOL, _is_integer)),
        _methods(
            "add",
            _method("quantity_add", (QUANTITY,), QUANTITY, amounts.add),
            _method("quantity_add_int", (INT,), QUANTITY, lambda q, n: amounts.add(q, amounts.whole(n))),
        ),
        _methods(
            "sub",
            _method("quantity_sub", (QUANTITY,), QUANTITY, amounts.subtract),
            _method("quantity_sub_int", (INT,), QUANTITY, lambda q, n: amounts.subtract(q, amounts.whole(n))),
        ),
    ),
)
