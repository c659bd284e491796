"""`&&`, `||`, `!` and `?:`.

An error on one side of `&&` counts only if the other side is true. So operands that can fail are tried and the first
error is kept; operands that cannot fail cost no more than Python's own `and`. A chain is one flat sequence, regardless
of parentheses.
"""

from dataclasses import dataclass
from typing import Final

from devlet.cel.ast import Call, Expr
from devlet.cel.generate.code import Block, Body, Line, Operand
from devlet.cel.generate.context import Context, Steps, joined
from devlet.cel.types import BOOL

AND: Final = "_&&_"
OR: Final = "_||_"


@dataclass(frozen=True, slots=True)
class _Term:
    lines: Body
    operand: Operand
    fails: bool


def chain(context: Context, node: Call) -> Steps:
    """Write all operands joined by the same operator."""
    terms: list[_Term] = []
    for part in _flat(context, node):
        before = context.code.failures
        with context.code.apart(depth=2) as lines:
            operand = context.condition((yield part))
            if operand.keys:
                context.code.may_fail()
        terms.append(_Term(lines, operand, context.code.failures > before))
    return _joined(context, terms, is_and=node.function == AND)


def _flat(context: Context, node: Call) -> list[Expr]:
    terms: list[Expr] = []
    rest: list[Expr] = [node]
    while rest:
        part = rest.pop()
        if isinstance(part, Call) and part.function == node.function and part.id not in context.constants:
            rest += reversed(part.args)
        else:
            terms.append(part)
    return terms


def _joined(context: Context, terms: list[_Term], *, is_and: bool) -> Operand:
    failing = [i for i, term in enumerate(terms) if term.fails]
    if not failing and not any(term.lines for term in terms[1:]):
        return _inline(context, terms, " and " if is_and else " or ")
    # If only the last operand can fail, its error is the error of the whole.
    is_kept = bool(failing) and failing[0] < len(terms) - 1
    result, error = context.code.fresh("t"), context.code.fresh("e")
    if is_kept:
        context.code.write(f"{error} = None")
    for i, term in enumerate(terms):
        body = _assigned(context, term, result)
        if is_kept and term.fails:
            kept = "x" if i == failing[0] else f"{error} or x"
            body = tried(body, f"{result} = {is_and}", f"{error} = {kept}")
        if i:
            context.code.put(f"if {result}:" if is_and else f"if not {result}:", body)
        else:
            context.code.body += body
    if is_kept:
        raise_kept(context, error, result if is_and else f"not {result}")
    return Operand(result, BOOL, simple=True)


def _inline(context: Context, terms: list[_Term], word: str) -> Operand:
    context.code.body += terms[0].lines
    operand = terms[0].operand
    for term in terms[1:]:
        operand = context.code.combined(f"({operand.text}{word}{term.operand.text})", BOOL)
    return operand


def _assigned(context: Context, term: _Term, name: str) -> Body:
    return [*term.lines, context.code.line(f"{name} = {term.operand.text}", term.operand.keys)]


def tried(body: Body, *handler: str) -> Body:
    return [Block("try:", body), Block("except E as x:", [Line(line) for line in handler])]


def raise_kept(context: Context, error: str, condition: str) -> None:
    """Raise the kept error, or drop it: it refers to the frame, and the frame would keep it alive."""
    inner: Body = [Block(f"if {condition}:", [Line(f"raise {error}")]), Line(f"{error} = None")]
    context.code.put(f"if {error} is not None:", inner)


def negation(context: Context, node: Call) -> Steps:
    operand = context.condition((yield node.args[0]))
    return context.code.combined(f"(not {operand.text})", BOOL, operand)


def conditional(context: Context, node: Call) -> Steps:
    test, *choices = node.args
    condition = context.code.settled(context.condition((yield test)))
    bodies: list[Body] = []
    values: list[Operand] = []
    for choice in choices:
        with context.code.apart() as lines:
            values.append(context.value((yield choice)))
        bodies.append(lines)
    then, other = values
    t = joined(value.type for value in values)
    if not any(bodies):
        return context.code.combined(f"({then.text} if {condition.text} else {other.text})", t)
    result = context.code.fresh("t")
    for header, body, value in zip((f"if {condition.text}:", "else:"), bodies, values, strict=True):
        context.code.put(header, [*body, Line(f"{result} = {value.text}")])
    return Operand(result, t, simple=True)
