"""Fields, keys and indices: `a.b`, `a["b"]`, `a.?b`, `a[?"b"]` and `has(a.b)`.

A chain such as `device.attributes["d"].model` becomes one Python expression, and a KeyError in it becomes the CEL
error. Only constant strings are looked up that way, because Python treats 1, 1.0 and True as the same key.
"""

from collections.abc import Generator

from devlet.cel import operators
from devlet.cel.ast import Call, Expr, Literal, Select
from devlet.cel.environment import ObjectField
from devlet.cel.generate.code import Operand
from devlet.cel.generate.context import Context, NotGenerated, Steps, is_dynamic
from devlet.cel.types import BOOL, DYN, STRING, Kind, Type, optional_of, unwrap_optional
from devlet.cel.values import Optional, Value


def select(context: Context, node: Select) -> Steps:
    operand = yield node.operand
    field = context.code.constant(node.field, STRING)
    found = _object_field(context, node.operand, operand, node.field)
    if node.is_test:
        return _presence(context, operand, field, found)
    if found:
        operand = context.code.settled(operand)
        return Operand(f"{operand.text}.{found.attribute}", found.type)
    return _element(context, node, operand, field)


def index(context: Context, node: Call) -> Steps:
    container, key = yield from _with_key(context, node)
    return _element(context, node, container, key)


def optional_select(context: Context, node: Call) -> Steps:
    operand = yield node.args[0]
    field = yield node.args[1]
    if found := _object_field(context, node.args[0], operand, field.constant):
        operand = context.code.settled(operand)
        return Operand(f"{operand.text}.{found.attribute}", optional_of(found.type), bare=True)
    return _optional_element(context, operand, field)


def optional_index(context: Context, node: Call) -> Steps:
    container, key = yield from _with_key(context, node)
    return _optional_element(context, container, key)


def _with_key(context: Context, node: Call) -> Generator[Expr, Operand, tuple[Operand, Operand]]:
    container = yield node.args[0]
    if isinstance(node.args[1], Literal):
        return container, (yield node.args[1])
    before = context.code.crashes
    container = context.code.settled(container)
    key = context.value((yield node.args[1]))
    context.code.is_fragile |= context.code.crashes > before
    return container, key


def _object_field(context: Context, node: Expr, operand: Operand, field: str) -> ObjectField | None:
    """Return the field of a host object. Unless the value is certainly such an object, `evaluate` has to handle it."""
    expected = unwrap_optional(context.checked.types.get(node.id, DYN))[0]
    found = context.checked.environment.objects.get(expected.name, {}).get(field)
    if found and operand.type != expected:
        raise NotGenerated
    return found


def _element(context: Context, node: Expr, container: Operand, key: Operand) -> Operand:
    t = _element_type(container.type)
    is_text = type(key.constant) is str
    if is_text and unwrap_optional(container.type)[1]:
        return _further(context, context.bare(container), key)
    if is_text and container.type.kind is Kind.MAP:
        return _looked_up(context, container, key, t, node.id)
    if is_text and is_dynamic(container.type):
        return _looked_up_dynamic(context, container, key, t, node.id)
    return context.code.called(operators.index, context.value(container), key, type=t)


def _element_type(t: Type) -> Type:
    """Return the type of an element of a list or map; for an optional it is optional as well."""
    inner, is_optional = unwrap_optional(t)
    element = inner.params[-1] if inner.kind in (Kind.LIST, Kind.MAP) else DYN
    return optional_of(element) if is_optional else element


def _looked_up(context: Context, container: Operand, key: Operand, t: Type, node: int) -> Operand:
    if key.constant in container.keys:
        container = context.code.stored(container)
    return Operand(f"{container.text}[{key.text}]", t, keys={**container.keys, key.constant: node})


def _looked_up_dynamic(context: Context, container: Operand, key: Operand, t: Type, node: int) -> Operand:
    value = context.code.stored(container)
    other = f"{context.code.known(operators.index)}({value.text}, {key.text})"
    text = f"({value.text}[{key.text}] if type({value.text}) is dict else {other})"
    return context.code.stored(Operand(text, t, keys={key.constant: node}))


def _further(context: Context, bare: Operand, key: Operand) -> Operand:
    """Look up a field of the value of an optional. The result is optional again."""
    name = context.code.fresh("t")
    value = context.code.stored(bare)
    find = context.code.known(_find_further)
    absent = context.code.known(operators.ABSENT)
    context.code.write(f"{name} = {absent} if {context.is_absent(value)} else {find}({value.text}, {key.text})")
    context.code.may_fail()
    return Operand(name, _element_type(bare.type), simple=True, bare=True)


def _find_further(container: Value, key: Value) -> Value:
    while type(container) is Optional:
        container = container.value if container.has_value else operators.ABSENT
    return operators.find(container, key)


def _optional_element(context: Context, container: Operand, key: Operand) -> Operand:
    is_text = type(key.constant) is str
    if is_text and unwrap_optional(container.type)[1]:
        return _further(context, context.bare(container), key)
    if not is_text or container.type.kind is not Kind.MAP:
        return context.code.called(operators.optional_index, context.value(container), key, type=optional_of(DYN))
    value = context.code.stored(container)
    find = f"{context.code.known(operators.find)}({value.text}, {key.text})"
    absent = context.code.known(operators.ABSENT)
    get = f"{value.text}.get({key.text}, {absent})"
    t = optional_of(_element_type(container.type))
    return Operand(f"({get} if type({value.text}) is dict else {find})", t, bare=True)


def _presence(context: Context, operand: Operand, field: Operand, found: ObjectField | None) -> Operand:
    if operand.bare or operand.type.kind is not Kind.MAP or found:
        attribute = context.code.constant(found.attribute if found else "", STRING)
        return context.code.called(operators.has, context.value(operand), field, attribute, type=BOOL)
    value = context.code.stored(operand)
    has = f"{context.code.known(operators.has)}({value.text}, {field.text})"
    return Operand(f"({field.text} in {value.text} if type({value.text}) is dict else {has})", BOOL)
