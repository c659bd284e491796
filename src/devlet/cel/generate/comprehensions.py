"""Macros as loops: `all`, `exists`, `exists_one`, `map`, `filter`, `cel.bind` and their relatives.

The parser has made folds of them, always of the same few shapes; anything else is left to `evaluate`. In `all` and
`exists` an error is kept until a later element decides, as in `&&` and `||`. In the others a later error may replace an
earlier one, so that the text of the last is asked for where it is needed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from devlet.cel.ast import Call, Comprehension, Expr, Ident, ListLiteral, Literal
from devlet.cel.generate.code import Body, Line, Operand
from devlet.cel.generate.context import Context, NotCovered, NotGenerated, Steps
from devlet.cel.generate.logic import AND, OR, raise_kept, tried
from devlet.cel.macros import MAP_INSERT
from devlet.cel.types import BOOL, INT, Kind
from devlet.cel.values import Value


def comprehension(context: Context, node: Comprehension) -> Steps:
    match node.step, node.init:
        case Ident(), _ if isinstance(node.range, ListLiteral) and not node.range.elements:
            return bind(context, node)
        case Call(function="_&&_" | "_||_"), Literal(value=bool()):
            return quantifier(context, node)
        case Call(), Literal(value=int()):
            return exists_one(context, node)
        case Call(), _:
            return collection(context, node)
    raise NotGenerated


def bind(context: Context, node: Comprehension) -> Steps:
    """The value is computed at once, though the reference waits until it is used. If it fails, it may not be used."""
    before = context.code.failures
    with context.code.apart() as lines:
        value = context.simple((yield node.init))
    if context.code.failures > before and lines:
        context.code.body += tried(lines, f"raise {context.code.known(NotCovered)}")
    else:
        context.code.body += lines
    with context.variables(**{node.accumulator: value}):
        return (yield node.result)


def quantifier(context: Context, node: Comprehension) -> Steps:
    """`all` and `exists`."""
    assert isinstance(node.step, Call)
    is_all = node.step.function == AND
    over = yield from _range(context, node)
    before = context.code.failures
    result, error = context.code.fresh("t"), context.code.fresh("e")
    with _loop(context, node, over, depth=2) as (header, lines):
        predicate = context.code.settled(context.condition((yield node.step.args[1])))
        fails = context.code.failures > before
        lines = tried([*lines], f"{error} = {error} or x", "continue") if fails else lines
    decided = f"if not {predicate.text}:" if is_all else f"if {predicate.text}:"
    context.code.write(f"{result} = {is_all}")
    if fails:
        context.code.write(f"{error} = None")
    with context.code.apart() as body:
        context.code.body += lines
        context.code.nest(decided, f"{result} = {not is_all}", "break")
    context.code.put(header, body)
    if fails:
        raise_kept(context, error, result if is_all else f"not {result}")
    return Operand(result, BOOL, simple=True)
