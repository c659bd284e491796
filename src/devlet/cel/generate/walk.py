"""Walk the tree and pass each node to its part of the generator."""

from collections.abc import Callable, Mapping
from typing import Final

from devlet.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
    walk,
)
from devlet.cel.generate import access, calls, comprehensions, equality, literals, logic, optionals
from devlet.cel.generate.code import MAX_DEPTH, Operand
from devlet.cel.generate.context import Context, NotGenerated, Steps
from devlet.cel.types import runtime_type
from devlet.cel.values import CelError, Value

_CALLS: Final[Mapping[str, Callable[[Context, Call], Steps]]] = {
    logic.AND: logic.chain,
    logic.OR: logic.chain,
    "!_": logic.negation,
    "_?_:_": logic.conditional,
    "_==_": equality.equality,
    "_!=_": equality.equality,
    "_<_": equality.order,
    "_<=_": equality.order,
    "_>_": equality.order,
    "_>=_": equality.order,
    "@in": equality.membership,
    "_[_]": access.index,
    "_?._": access.optional_select,
    "_[?_]": access.optional_index,
    "or": optionals.or_else,
    "orValue": optionals.or_else,
    "hasValue": optionals.has_value,
    "value": optionals.value,
}


def write(context: Context, root: Expr) -> Operand:
    """Write the code of a tree. Nodes wait on an explicit stack, because trees may be deeper than Python's stack."""
    waiting = [_visit(context, root)]
    operand: Operand | None = None
    while waiting:
        try:
            part = next(waiting[-1]) if operand is None else waiting[-1].send(operand)
            operand = None
            waiting.append(_visit(context, part))
        except StopIteration as stop:
            operand = stop.value
            waiting.pop()
    assert operand is not None
    return operand


def _visit(context: Context, node: Expr) -> Steps:
    if node.id in context.constants:
        return _done(_constant(context, node, context.constants[node.id]))
    if isinstance(node, Call | Comprehension) and context.code.depth >= MAX_DEPTH:
        return _outlined(context, node)
    return _node(context, node)


def _node(context: Context, node: Expr) -> Steps:
    match node:
        case Literal():
            return _done(context.code.constant(node.value, runtime_type(node.value)))
        case Ident():
            return _done(literals.identifier(context, node))
        case Select():
            return access.select(context, node)
        case Call():
            return _CALLS.get(node.function, calls.call)(context, node)
        case ListLiteral():
            return literals.list_literal(context, node)
        case MapLiteral():
            return literals.map_literal(context, node)
        case Comprehension():
            return comprehensions.comprehension(context, node)
        case StructLiteral():
            raise NotGenerated


def _constant(context: Context, node: Expr, value: Value) -> Operand:
    if isinstance(value, CelError):
        context.fail_if("True")
        value = None
    return context.code.constant(value, context.checked.types.get(node.id) or runtime_type(value))


def _done(operand: Operand) -> Steps:
    yield from ()
    return operand


def _outlined(context: Context, node: Call | Comprehension) -> Steps:
    """Move a node to a function of its own, because Python limits nested blocks. Its parameters are the variables it
    uses."""
    code, before = context.code, context.code.failures
    name, result = code.fresh("f"), code.fresh("t")
    names = {part.name for part in walk(node) if isinstance(part, Ident)}
    parameters = sorted({operand.text for name, operand in context.scope.items() if name in names})
    with code.function(name, parameters):
        operand = context.value((yield from _node(context, node)))
        code.write(f"return {operand.text}")
    code.write(f"{result} = {name}({', '.join(parameters)})")
    code.failures += code.failures > before
    return Operand(result, operand.type, simple=True)
