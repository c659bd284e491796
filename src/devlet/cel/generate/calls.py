"""Arithmetic, and calls of functions that no other module of the generator handles."""

from dataclasses import replace
from typing import Final

from devlet.cel import dispatch
from devlet.cel.ast import Call
from devlet.cel.functions import Overload
from devlet.cel.generate.code import Operand
from devlet.cel.generate.context import Context, NotCovered, Steps, joined, parts
from devlet.cel.generate.inline import constant_call, inline_call
from devlet.cel.generate.logic import tried
from devlet.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, STRING, UINT, Kind, Type
from devlet.cel.values import INT_MAX, INT_MIN

_SIGNS: Final = {"_+_": "+", "_-_": "-", "_*_": "*"}
# If these fail, the reference cannot count their cost and gives up; `||` does not absorb the error.
_FRAGILE: Final = frozenset(("distinct", "flatten", "sort", "@sortByAssociatedKeys"))
# Values of these types are never null.
_SOLID: Final = frozenset((BOOL, INT, UINT, DOUBLE, STRING, BYTES))


def call(context: Context, node: Call) -> Steps:
    if node.function not in _FRAGILE:
        return (yield from _call(context, node))
    before = context.code.failures
    with context.code.apart() as lines:
        operand = context.code.stored((yield from _call(context, node)))
    context.code.crashes += 1
    context.code.body += tried(lines, f"raise {context.code.known(NotCovered)}")
    context.code.failures = before
    return operand


def _call(context: Context, node: Call) -> Steps:
    arguments = yield from context.arguments(parts(node))
    overload = context.overload(node)
    if node.function == "dyn":
        return Operand(arguments[0].text, DYN, keys=arguments[0].keys)
    if node.function in _SIGNS and (found := _arithmetic(context, _SIGNS[node.function], *arguments)):
        return found
    if overload:
        for shortcut in (constant_call, inline_call):
            if found := shortcut(context, node, overload, arguments):
                return found
    settled = [context.code.settled(argument) for argument in arguments]
    implementation = _implementation(context, node, overload, settled)
    return context.code.called(implementation, *settled, type=_result(context, node, settled))


def _arithmetic(context: Context, sign: str, left: Operand, right: Operand) -> Operand | None:
    if left.type != right.type:
        return None
    if left.type == STRING and sign == "+":
        return context.code.combined(f"({left.text} + {right.text})", STRING, left, right)
    if left.type != INT:
        return None
    result = context.code.stored(context.code.combined(f"({left.text} {sign} {right.text})", INT, left, right))
    context.fail_if(f"not {INT_MIN} <= {result.text} <= {INT_MAX}")
    return result


def _implementation(context: Context, node: Call, overload: Overload | None, arguments: list[Operand]) -> object:
    function = context.checked.environment.functions[node.function]
    if overload and not function.dispatch and overload.params == tuple(argument.type for argument in arguments):
        if _SOLID.issuperset(overload.params):
            return overload.call
    return dispatch.implementation(function, overload)


def _result(context: Context, node: Call, arguments: list[Operand]) -> Type:
    """Return the type of the result if the functions determine it. If it depends on the arguments it may be any
    type."""
    overloads = context.overloads(node)
    if context.checked.environment.functions[node.function].dispatch and node.function != "size":
        given = tuple(argument.type for argument in arguments)
        overloads = [overload for overload in overloads if overload.params == given]
    return joined(_certain(overload.result) for overload in overloads)


def _certain(t: Type) -> Type:
    return DYN if t.kind is Kind.PARAM else replace(t, params=tuple(map(_certain, t.params)))
