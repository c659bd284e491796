"""List and map literals, and names."""

from devlet.cel.ast import Ident, ListLiteral, MapLiteral
from devlet.cel.generate.code import Operand
from devlet.cel.generate.context import Context, NotGenerated, Steps, joined
from devlet.cel.types import DYN, Type, list_of, map_of
from devlet.cel.values import Optional


def identifier(context: Context, node: Ident) -> Operand:
    if found := context.scope.get(node.name):
        return found
    raise NotGenerated


def list_literal(context: Context, node: ListLiteral) -> Steps:
    if not node.optionals:
        elements = yield from context.arguments(node.elements)
        return _display(context, elements)
    name = context.code.fresh("t")
    context.code.write(f"{name} = []")
    for position, part in enumerate(node.elements):
        element = context.simple((yield part))
        if position in node.optionals:
            _add_optional(context, element, f"{name}.append({element.text}.value)")
        else:
            context.code.write(f"{name}.append({element.text})")
    return Operand(name, list_of(DYN), simple=True)


def _display(context: Context, elements: list[Operand]) -> Operand:
    t = list_of(joined(element.type for element in elements))
    if len(elements) < 8:
        text = ", ".join(element.text for element in elements)
        return context.code.combined(f"[{text}]", t, *elements)
    name = context.code.fresh("t")
    context.code.write(f"{name} = []")
    for element in map(context.code.settled, elements):
        context.code.write(f"{name}.append({element.text})")
    return Operand(name, t, simple=True)


def _add_optional(context: Context, element: Operand, add: str, otherwise: str = "pass") -> None:
    context.fail_if(f"type({element.text}) is not {context.code.known(Optional)}")
    context.code.nest(f"if {element.text}.has_value:", add)
    context.code.nest("else:", otherwise)


def map_literal(context: Context, node: MapLiteral) -> Steps:
    name = context.code.fresh("t")
    context.code.write(f"{name} = {{}}")
    types: list[tuple[Type, Type]] = []
    for entry in node.entries:
        key, value = yield from context.arguments((entry.key, entry.value))
        key, value = context.code.settled(key), context.code.settled(value)
        types.append((key.type, DYN if entry.optional else value.type))
        if entry.optional:
            _add_optional(context, value, f"{name}[{key.text}] = {value.text}.value", f"{name}.pop({key.text}, None)")
        else:
            context.code.write(f"{name}[{key.text}] = {value.text}")
    return Operand(name, map_of(joined(key for key, _ in types), joined(value for _, value in types)), simple=True)
