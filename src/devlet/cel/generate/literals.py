"""Lists and maps as they are written, and names."""

from devlet.cel.ast import Ident, ListLiteral, MapLiteral
from devlet.cel.generate.code import Operand
from devlet.cel.generate.context import Context, NotGenerated, Steps
from devlet.cel.values import Optional


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
            _add_optional(context, element, f"{name}.append({element.text}.value)")
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


def _add_optional(context: Context, element: Operand, add: str, otherwise: str = "pass") -> None:
    context.fail_if(f"type({element.text}) is not {context.code.known(Optional)}")
    context.code.nest(f"if {element.text}.has_value:", add)
    context.code.nest("else:", otherwise)


def map_literal(context: Context, node: MapLiteral) -> Steps:
    name = context.code.fresh("t")
    context.code.write(f"{name} = {{}}")
    for entry in node.entries:
        key, value = yield from context.arguments((entry.key, entry.value))
        key, value = context.code.settled(key), context.code.settled(value)
        if entry.optional:
            _add_optional(context, value, f"{name}[{key.text}] = {value.text}.value", f"{name}.pop({key.text}, None)")
        else:
            context.code.write(f"{name}[{key.text}] = {value.text}")
    return Operand(name, context.type(node), simple=True)
