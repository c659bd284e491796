"""Lists and maps as they are written, and names."""

from devlet.cel.ast import Ident, ListLiteral, MapLiteral
from devlet.cel.generate.code import Operand
from devlet.cel.generate.context import Context, NotGenerated, Steps
from devlet.cel.types import BOOL, INT, STRING, UINT, Kind
from devlet.cel.values import Optional

# Of one type, so that Python's idea of equal keys is right.
_KEYS = frozenset((BOOL, INT, UINT, STRING))


def identifier(context: Context, node: Ident) -> Operand:
    if found := context.scope.get(node.name):
        return Operand(found.text, context.type(node), simple=True)
    raise NotGenerated


def list_literal(context: Context, node: ListLiteral) -> Steps:
    if not node.optionals:
        elements = yield from context.arguments(node.elements)
        return _display(context, node, elements)
    name = context.code.fresh("t")
    context.code.write(f"{name} = []")
    for position, part in enumerate(node.elements):
        element = context.simple((yield part))
        if position in node.optionals:
            _add_optional(context, name, element)
        else:
            context.code.write(f"{name}.append({element.text})")
    return Operand(name, context.type(node), simple=True)


def _display(context: Context, node: ListLiteral, elements: list[Operand]) -> Operand:
    if len(elements) < 8:
        text = ", ".join(element.text for element in elements)
        return context.code.combined(f"[{text}]", context.type(node), *elements)
    name = context.code.fresh("t")
    context.code.write(f"{name} = []")
    for element in map(context.code.settled, elements):
        context.code.write(f"{name}.append({element.text})")
    return Operand(name, context.type(node), simple=True)


def _add_optional(context: Context, name: str, element: Operand) -> None:
    context.fail_if(f"type({element.text}) is not {context.code.known(Optional)}")
    context.code.nest(f"if {element.text}.has_value:", f"{name}.append({element.text}.value)")


def map_literal(context: Context, node: MapLiteral) -> Steps:
    t = context.type(node)
    if any(entry.optional for entry in node.entries) or (node.entries and t.params[0] not in _KEYS):
        raise NotGenerated
    assert t.kind is Kind.MAP
    name = context.code.fresh("t")
    parts = yield from context.arguments(part for entry in node.entries for part in (entry.key, entry.value))
    context.code.write(f"{name} = {{}}")
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        key, value = context.code.settled(key), context.code.settled(value)
        context.code.write(f"{name}[{key.text}] = {value.text}")
    return Operand(name, t, simple=True)
