"""Checks of Kubernetes beyond types: literals that can only fail when they are evaluated.

Durations, timestamps and regular expressions that do not parse, lists and maps of mixed types, and formats whose
arguments do not fit (devlet.cel.format_check). An issue points at the literal, not at the call.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from devlet.cel.ast import (
    Call,
    Comprehension,
    Expr,
    ListLiteral,
    Literal,
    MapLiteral,
    Parsed,
    Select,
    StructLiteral,
)
from devlet.cel.environment import Environment
from devlet.cel.format_check import format_problem
from devlet.cel.functions import Function
from devlet.cel.issues import NOWHERE, Issue
from devlet.cel.library.regex import PatternTooLarge, compiled
from devlet.cel.types import Type, describe, runtime_type, unwrap_optional
from devlet.cel.values import CelError, Constant

Types = Mapping[int, Type]


@dataclass(frozen=True, slots=True)
class _Node:
    expr: Expr
    in_format: bool
    """Part of a call of `format`, whose arguments may have different types."""


def validate(
    parsed: Parsed, types: Types, overloads: Mapping[int, Sequence[str]], environment: Environment
) -> list[Issue]:
    """Return the issues in the order in which the reference finds them."""
    nodes = _bottom_up(parsed.root)
    found: list[tuple[int, str]] = []
    if environment.homogeneous_literals:
        found += _mixed_types(nodes, types)
    if environment.validate_literals:
        for function in ("duration", "timestamp", "matches"):
            found += _bad_literals(nodes, function, environment)
    if environment.validate_formats:
        calls = [node.expr for node in nodes if isinstance(node.expr, Call)]
        found += [p for call in calls if (p := format_problem(call, overloads.get(call.id, ()), types))]
    return [Issue(message, parsed.source.positions.get(id, NOWHERE)) for id, message in found]


def _bottom_up(root: Expr) -> list[_Node]:
    """Return all nodes, children before parents. The tree may be deeper than Python's stack."""
    found: list[_Node] = []
    todo = [_Node(root, False)]
    while todo:
        node = todo.pop()
        found.append(node)
        in_format = node.in_format or (isinstance(node.expr, Call) and node.expr.function == "format")
        todo += [_Node(part, in_format) for part in _parts(node.expr)]
    found.reverse()
    return found


def _parts(e: Expr) -> Iterator[Expr]:
    match e:
        case Select(operand=operand):
            yield operand
        case Call(target=target, args=args):
            if target is not None:
                yield target
            yield from args
        case ListLiteral(elements=elements):
            yield from elements
        case MapLiteral(entries=entries):
            for entry in entries:
                yield entry.key
                yield entry.value
        case StructLiteral(fields=fields):
            for field in fields:
                yield field.value
        case Comprehension():
            yield from (e.range, e.init, e.condition, e.step, e.result)


def _bad_literals(nodes: Sequence[_Node], function: str, environment: Environment) -> Iterator[tuple[int, str]]:
    for node in nodes:
        call = node.expr
        if not isinstance(call, Call) or call.function != function or not call.args:
            continue
        # As in the reference, for `matches(text, pattern)` the text is checked, for `text.matches(pattern)` the
        # pattern.
        literal = call.args[0]
        if isinstance(literal, Literal) and _fails(environment.functions.get(function), literal.value):
            yield literal.id, f"invalid {function} argument"


def _fails(function: Function | None, argument: Constant) -> bool:
    if function is None:
        return False
    if function.name == "matches":
        return isinstance(argument, str) and not _is_pattern(argument)
    wanted = runtime_type(argument)
    for overload in function.overloads:
        if overload.params == (wanted,):
            try:
                overload.call(argument)
            except CelError:
                return True
    return False


def _is_pattern(text: str) -> bool:
    """Check a pattern. Patterns that are too large are left to planning, whose error names the limit."""
    try:
        compiled(text)
    except PatternTooLarge:
        return True
    except CelError:
        return False
    return True


def _mixed_types(nodes: Sequence[_Node], types: Types) -> Iterator[tuple[int, str]]:
    checked = [node.expr for node in nodes if not node.in_format]
    for e in checked:
        if isinstance(e, ListLiteral):
            yield from _mixed_list(e, types)
    for e in checked:
        if isinstance(e, MapLiteral):
            yield from _mixed_map(e, types)


def _mixed_list(e: ListLiteral, types: Types) -> Iterator[tuple[int, str]]:
    """Report only the first element whose type differs."""
    first: Type | None = None
    for i, element in enumerate(e.elements):
        t = _element_type(element, i in e.optionals, types)
        first = first or t
        if t != first:
            yield element.id, _mismatch(first, t)
            return


def _mixed_map(e: MapLiteral, types: Types) -> Iterator[tuple[int, str]]:
    """Report all keys and values whose types differ from the first ones."""
    if not e.entries:
        return
    keys = types[e.entries[0].key.id]
    values = _element_type(e.entries[0].value, e.entries[0].optional, types)
    for entry in e.entries[1:]:
        key, value = types[entry.key.id], _element_type(entry.value, entry.optional, types)
        if key != keys:
            yield entry.key.id, _mismatch(keys, key)
        if value != values:
            yield entry.value.id, _mismatch(values, value)


def _element_type(e: Expr, is_optional: bool, types: Types) -> Type:
    return unwrap_optional(types[e.id])[0] if is_optional else types[e.id]


def _mismatch(expected: Type, found: Type) -> str:
    return f"expected type '{describe(expected)}' but found '{describe(found)}'"
