"""`==`, `!=`, order and `in`.

Python's operators are correct only for values of the same plain type. Where a type is known only at run time, the code
checks for the type of the other side, and leaves everything else to `operators`.
"""

from collections.abc import Callable
from typing import Final

from devlet.cel import operators
from devlet.cel.amounts import Sum
from devlet.cel.ast import Call, Expr, Literal
from devlet.cel.generate.code import Operand
from devlet.cel.generate.context import Context, NotCovered, Steps, is_constant, is_dynamic, parts
from devlet.cel.generate.inline import AMOUNTS, CLASSES, guard
from devlet.cel.membership import Members, members
from devlet.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Kind, Type
from devlet.cel.values import CelError, Value

_PLAIN: Final = frozenset((BOOL, INT, UINT, DOUBLE, STRING, BYTES, DURATION, TIMESTAMP))
# NaN cannot be ordered; comparing it is an error.
_ORDERED: Final = _PLAIN - {DOUBLE}

_ORDER: Final = {
    "_<_": ("<", operators.less),
    "_<=_": ("<=", operators.less_equals),
    "_>_": (">", operators.greater),
    "_>=_": (">=", operators.greater_equals),
}


def equality(context: Context, node: Call) -> Steps:
    """Write `==` and `!=`."""
    left, right = yield from context.arguments(node.args)
    is_equal = node.function == "_==_"
    sign, call = ("==", operators.equal) if is_equal else ("!=", operators.not_equal)
    if left.type == right.type and left.type in _PLAIN:
        return _python(context, left, sign, right)
    # A string equals only strings, and with a string on the left nothing is an error.
    if STRING in (left.type, right.type) and (left.type == STRING or not is_equal):
        return _python(context, left, sign, right)
    if left.type == right.type and left.type in AMOUNTS and _is_comparable(right):
        return _amounts(context, left, sign, right, left.type)
    return _guarded(context, left, sign, right, call)


def _python(context: Context, left: Operand, sign: str, right: Operand) -> Operand:
    return context.code.combined(f"({left.text} {sign} {right.text})", BOOL, left, right)


def _is_comparable(right: Operand) -> bool:
    return is_constant(right) and right.constant is not None and not isinstance(right.constant, Sum)


def _amounts(context: Context, left: Operand, sign: str, right: Operand, t: Type) -> Operand:
    part = AMOUNTS[t][0]
    return _python(context, _part(context, left, part), sign, _part(context, right, part))


def _part(context: Context, amount: Operand, name: str) -> Operand:
    if isinstance(amount.constant, tuple(kind for _, kind in AMOUNTS.values())):
        return context.code.constant(getattr(amount.constant, name), DYN)
    return context.code.combined(f"{amount.text}.{name}", DYN, amount)


def _guarded(
    context: Context, left: Operand, sign: str, right: Operand, call: Callable[[Value, Value], bool]
) -> Operand:
    """Use Python's operator if the operand of unknown type has the type of the other one."""
    if is_dynamic(left.type) and right.type in CLASSES:
        asked, wanted = 0, right.type
    elif is_dynamic(right.type) and left.type in CLASSES:
        asked, wanted = 1, left.type
    else:
        return context.code.called(call, context.code.settled(left), context.code.settled(right), type=BOOL)
    sides = tuple(map(context.code.stored, (left, right)))
    slow = f"{context.code.known(call)}({sides[0].text}, {sides[1].text})"
    test = f"type({sides[asked].text}) is {CLASSES[wanted]}"
    context.code.may_fail()
    return context.code.stored(Operand(f"({sides[0].text} {sign} {sides[1].text} if {test} else {slow})", BOOL))


def order(context: Context, node: Call) -> Steps:
    sign, call = _ORDER[node.function]
    if compared := _comparison(context, node):
        return (yield from _compare_to_zero(context, *compared, sign))
    left, right = yield from context.arguments(node.args)
    if left.type == right.type and left.type in _ORDERED:
        return _python(context, left, sign, right)
    return _guarded(context, left, sign, right, call)


def _comparison(context: Context, node: Call) -> tuple[Call, Type] | None:
    """Return the `compareTo` call and the compared type, if the comparison has the form `a.compareTo(b) >= 0`."""
    call, zero = node.args
    if not (isinstance(zero, Literal) and type(zero.value) is int and zero.value == 0):
        return None
    if not isinstance(call, Call) or call.function != "compareTo":
        return None
    overload = context.overload(call)
    return (call, overload.params[0]) if overload and overload.params[0] in AMOUNTS else None


def _compare_to_zero(context: Context, call: Call, t: Type, sign: str) -> Steps:
    sides = yield from context.arguments(parts(call))
    left, right = (guard(context, side, t) for side in sides)
    return _amounts(context, left, sign, right, t)


def membership(context: Context, node: Call) -> Steps:
    """Write `x in y`."""
    element, container = yield from context.arguments(node.args)
    if _is_list(context, node) and is_constant(container):
        if not container.constant:
            return context.code.constant(False, BOOL)
        if found := members(list(container.constant)):
            return _in_constant(context, element, found)
    if element.type == STRING and _holds_strings(container):
        return context.code.combined(f"({element.text} in {container.text})", BOOL, element, container)
    return context.code.called(operators.contains, *map(context.code.settled, (element, container)), type=BOOL)


def _is_list(context: Context, node: Expr) -> bool:
    reference = context.checked.references.get(node.id)
    return reference is not None and reference.overloads == ("in_list",)


def _in_constant(context: Context, element: Operand, found: Members) -> Operand:
    if element.type == STRING:
        return context.code.combined(f"({element.text} in {context.code.known(found.texts)})", BOOL, element)
    value = context.code.stored(element)
    context.code.crashes += 1
    slow = f"{context.code.known(_lookup(found))}({value.text})"
    if not is_dynamic(element.type):
        return context.code.combined(slow, BOOL)
    fast = f"{value.text} in {context.code.known(found.texts)}"
    return context.code.combined(f"({fast} if type({value.text}) is str else {slow})", BOOL)


def _lookup(found: Members) -> Callable[[Value], bool]:
    """Return a lookup function. A value that cannot be looked up ends the evaluation; `||` does not absorb the
    error."""

    def has(value: Value) -> bool:
        try:
            return found.has(value)
        except CelError:
            raise NotCovered from None

    return has


def _holds_strings(container: Operand) -> bool:
    t = container.type
    return t.kind in (Kind.LIST, Kind.MAP) and t.params[0] == STRING
