"""Macros as loops: `all`, `exists`, `exists_one`, `map`, `filter`, `cel.bind` and their relatives.

The parser expands them to folds of a few known shapes; any other fold is left to `evaluate`. In `all` and `exists` an
error is kept until a later element decides, as in `&&` and `||`. In the others a later error may replace an earlier
one, so the error text is left to `evaluate` when it is needed.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

from devlet.cel.ast import Call, Comprehension, Expr, Ident, ListLiteral, Literal
from devlet.cel.generate.code import Block, Body, Line, Operand
from devlet.cel.generate.context import Context, NotCovered, NotGenerated, Steps, joined
from devlet.cel.generate.logic import AND, raise_kept, tried
from devlet.cel.macros import MAP_INSERT
from devlet.cel.types import BOOL, DYN, INT, Kind, Type, list_of, map_of
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
    """Write `cel.bind`. The value is computed at once, though the reference waits until it is used. If it fails, the
    failure counts only if the variable is used."""
    before = context.code.failures
    with context.code.apart() as lines:
        value = context.simple((yield node.init))
    if context.code.failures > before and lines:
        context.code.body += tried(lines, f"raise {context.code.known(NotCovered)}")
    else:
        context.code.body += lines
    with context.variables({node.accumulator: value}):
        return (yield node.result)


def quantifier(context: Context, node: Comprehension) -> Steps:
    """Write `all` and `exists`."""
    predicate, is_all = _operand(node, 1), isinstance(node.step, Call) and node.step.function == AND
    over = yield from _range(context, node)
    result, error = context.code.fresh("t"), context.code.fresh("e")
    before = context.code.failures
    with _loop(context, node, over, depth=2) as (header, lines):
        holds = context.code.settled(context.condition((yield predicate)))
    fails = context.code.failures > before
    context.code.write(f"{result} = {is_all}")
    if fails:
        context.code.write(f"{error} = None")
        lines = tried(lines, f"{error} = {error} or x", "continue")
    decided = f"if not {holds.text}:" if is_all else f"if {holds.text}:"
    context.code.put(header, [*lines, Block(decided, [Line(f"{result} = {not is_all}"), Line("break")])])
    if fails:
        raise_kept(context, error, result if is_all else f"not {result}")
    return Operand(result, BOOL, simple=True)


def exists_one(context: Context, node: Comprehension) -> Steps:
    predicate = _operand(node, 0)
    over = yield from _range(context, node)
    count = context.code.fresh("t")
    before = context.code.failures, context.code.crashes
    with _loop(context, node, over) as (header, lines), _inexact(context):
        holds = context.code.settled(context.condition((yield predicate)))
    _ask_if_fragile(context, *before)
    context.code.write(f"{count} = 0")
    context.code.put(header, [*lines, Block(f"if {holds.text}:", [Line(f"{count} += 1")])])
    return Operand(f"({count} == 1)", BOOL)


def collection(context: Context, node: Comprehension) -> Steps:
    """Write `map`, `filter`, `transformList`, `transformMap` and `transformMapEntry`."""
    condition, put = _filter_and_step(node)
    over = yield from _range(context, node)
    result = context.code.fresh("t")
    before = context.code.failures, context.code.crashes
    with _loop(context, node, over) as (header, lines), _inexact(context, condition is not None):
        if condition is not None:
            holds = context.code.settled(context.condition((yield condition)))
            context.code.nest(f"if not {holds.text}:", "continue")
        t = yield from _put(context, put, result)
    _ask_if_fragile(context, *before)
    context.code.write(f"{result} = []" if put.function == "_+_" else f"{result} = {{}}")
    context.code.put(header, lines)
    return Operand(result, t, simple=True)


def _ask_if_fragile(context: Context, failures: int, crashes: int) -> None:
    """Let `evaluate` decide after an element that failed: the reference continues with the others, and may crash
    there."""
    context.code.is_fragile |= context.code.failures > failures and context.code.crashes > crashes


def _filter_and_step(node: Comprehension) -> tuple[Expr | None, Call]:
    step, condition = node.step, None
    if isinstance(step, Call) and step.function == "_?_:_":
        condition, step = step.args[0], step.args[1]
    if isinstance(step, Call) and step.function in ("_+_", MAP_INSERT) and _is_accumulator(node, step.args[0]):
        return condition, step
    raise NotGenerated


def _put(context: Context, step: Call, result: str) -> Generator[Expr, Operand, Type]:
    """Write what a step adds, and return the type of the whole."""
    if step.function == "_+_":
        (added,) = step.args[1:]
        if not isinstance(added, ListLiteral) or added.optionals:
            raise NotGenerated
        elements = yield from context.arguments(added.elements)
        for element in elements:
            context.code.write(f"{result}.append({context.code.settled(element).text})")
        return list_of(joined(element.type for element in elements))
    parts = [context.code.settled(part) for part in (yield from context.arguments(step.args[1:]))]
    if len(parts) == 2:
        # These are the keys of a map, or positions, so they are unique.
        context.code.write(f"{result}[{parts[0].text}] = {parts[1].text}")
        return map_of(parts[0].type, parts[1].type)
    context.code.write(f"{context.code.known(_insert)}({result}, {parts[0].text})")
    context.code.may_fail()
    return parts[0].type if parts[0].type.kind is Kind.MAP else map_of(DYN, DYN)


def _insert(made: dict[Value, Value], entries: Value) -> None:
    if not isinstance(entries, dict) or any(key in made for key in entries):
        raise NotCovered
    made.update(entries)


def _operand(node: Comprehension, position: int) -> Expr:
    """Return the part of a step of known shape that the user wrote."""
    if isinstance(node.step, Call) and any(_is_accumulator(node, part) for part in node.step.args):
        return node.step.args[position]
    raise NotGenerated


def _is_accumulator(node: Comprehension, part: Expr) -> bool:
    return isinstance(part, Ident) and part.name == node.accumulator


def _range(context: Context, node: Comprehension) -> Steps:
    over = context.simple((yield node.range))
    if over.type.kind not in (Kind.LIST, Kind.MAP):
        context.fail_if(f"not isinstance({over.text}, {context.code.known(_ITERABLE)})")
    return over


_ITERABLE = (list, tuple, dict)


@contextmanager
def _loop(context: Context, node: Comprehension, over: Operand, depth: int = 1) -> Iterator[tuple[str, Body]]:
    """Write the head of the loop. The code written inside is its body."""
    first, second = context.code.fresh("v"), context.code.fresh("v")
    key, element = _types(over.type)
    names = {
        node.variable: Operand(first, key if node.variable2 or over.type.kind is Kind.MAP else element, simple=True)
    }
    if node.variable2:
        names[node.variable2] = Operand(second, element, simple=True)
        header = f"for {first}, {second} in {_pairs(context, over)}:"
    else:
        header = f"for {first} in {over.text}:"
    with context.variables(names), context.code.apart(depth) as lines:
        yield header, lines


def _types(t: Type) -> tuple[Type, Type]:
    """Return the types of positions or keys, and of elements."""
    if t.kind is Kind.LIST:
        return INT, t.params[0]
    return (t.params[0], t.params[1]) if t.kind is Kind.MAP else (DYN, DYN)


def _pairs(context: Context, over: Operand) -> str:
    if over.type.kind is Kind.LIST:
        return f"enumerate({over.text})"
    return f"{over.text}.items()" if over.type.kind is Kind.MAP else f"{context.code.known(_items)}({over.text})"


def _items(over: Value) -> Iterable[tuple[Value, Value]]:
    return over.items() if isinstance(over, dict) else enumerate(over)


@contextmanager
def _inexact(context: Context, counts: bool = True) -> Iterator[None]:
    context.code.inexact += counts
    yield
    context.code.inexact -= counts
