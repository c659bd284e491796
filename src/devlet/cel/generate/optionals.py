"""`or`, `orValue`, `hasValue` and `value` of optionals, which need no box directly after `.?x` or `[?x]`."""

from devlet.cel import operators
from devlet.cel.ast import Call
from devlet.cel.generate.code import Line, Operand
from devlet.cel.generate.context import Context, NotGenerated, Steps, joined
from devlet.cel.types import BOOL, unwrap_optional


def or_else(context: Context, node: Call) -> Steps:
    """Write `or` and `orValue`: the other operand is evaluated only if needed."""
    optional = yield from _target(context, node)
    with context.code.apart() as lines:
        other = yield node.args[0]
        other = context.bare(other) if node.function == "or" else context.value(other)
    is_bare = node.function == "or"
    inner = unwrap_optional(optional.type)[0]
    t = joined((optional.type if is_bare else inner, other.type))
    if not lines:
        text = f"({other.text} if {context.is_absent(optional)} else {optional.text})"
        return Operand(text, t, bare=is_bare)
    name = context.code.fresh("t")
    context.code.write(f"{name} = {optional.text}")
    context.code.put(f"if {context.is_absent(optional)}:", [*lines, Line(f"{name} = {other.text}")])
    return Operand(name, t, simple=True, bare=is_bare)


def has_value(context: Context, node: Call) -> Steps:
    optional = yield from _target(context, node)
    return context.code.combined(f"({optional.text} is not {context.code.known(operators.ABSENT)})", BOOL)


def value(context: Context, node: Call) -> Steps:
    optional = yield from _target(context, node)
    context.fail_if(context.is_absent(optional))
    return Operand(optional.text, unwrap_optional(optional.type)[0], simple=True)


def _target(context: Context, node: Call) -> Steps:
    if node.target is None:
        raise NotGenerated
    return context.code.stored(context.bare((yield node.target)))
