"""Functions that are Python expressions, and constructors whose constant arguments yield constants.

A template is used if the checker chose exactly one overload, with these parameters. Arguments whose types are known
only at run time are checked by class first.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from devlet.cel.ast import Call
from devlet.cel.functions import Overload
from devlet.cel.generate.code import Operand
from devlet.cel.generate.context import Context, is_constant, is_dynamic
from devlet.cel.types import BOOL, INT, QUANTITY, STRING, Kind, Type, object_type
from devlet.cel.values import CelError
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.semver import Semver

SEMVER: Final = object_type("kubernetes.Semver")

AMOUNTS: Final = {QUANTITY: ("nano", Quantity), SEMVER: ("precedence", Semver)}
"""Types whose values are compared by one attribute, and their classes."""

_SIZES: Final = frozenset((Kind.STRING, Kind.BYTES, Kind.LIST, Kind.MAP))

_TEMPLATES: Final[Mapping[tuple[str, tuple[Type, ...]], str]] = {
    ("startsWith", (STRING, STRING)): "{0}.startswith({1})",
    ("endsWith", (STRING, STRING)): "{0}.endswith({1})",
    ("contains", (STRING, STRING)): "({1} in {0})",
    ("isGreaterThan", (QUANTITY, QUANTITY)): "({0}.nano > {1}.nano)",
    ("isLessThan", (QUANTITY, QUANTITY)): "({0}.nano < {1}.nano)",
    ("isGreaterThan", (SEMVER, SEMVER)): "({0}.precedence > {1}.precedence)",
    ("isLessThan", (SEMVER, SEMVER)): "({0}.precedence < {1}.precedence)",
}

_CONSTRUCTORS: Final = frozenset(
    ("quantity", "isQuantity", "semver", "isSemver", "ip", "isIP", "cidr", "isCIDR", "url", "isURL", "duration")
)
_SHORT = 1000


def constant_call(context: Context, node: Call, overload: Overload, arguments: Sequence[Operand]) -> Operand | None:
    """Compute a call such as `quantity("40Gi")` once. An error stays where it is and is raised only if it is
    reached."""
    if node.function not in _CONSTRUCTORS or not all(map(_is_short, arguments)):
        return None
    try:
        value = overload.call(*(argument.constant for argument in arguments))
    except CelError:
        return None
    return context.code.constant(value, overload.result)


def _is_short(argument: Operand) -> bool:
    return is_constant(argument) and not (isinstance(argument.constant, str) and len(argument.constant) > _SHORT)


def inline_call(context: Context, node: Call, overload: Overload, arguments: Sequence[Operand]) -> Operand | None:
    template = _TEMPLATES.get((node.function, overload.params))
    if template and all(a.type == t or is_dynamic(a.type) for a, t in zip(arguments, overload.params, strict=True)):
        guarded = [guard(context, a, t) for a, t in zip(arguments, overload.params, strict=True)]
        return context.code.combined(template.format(*(a.text for a in guarded)), overload.result, *guarded)
    if node.function == "size" and len(arguments) == 1 and arguments[0].type.kind in _SIZES:
        return context.code.combined(f"len({arguments[0].text})", INT, arguments[0])
    return None


def guard(context: Context, argument: Operand, wanted: Type) -> Operand:
    """Raise an error if a value whose type is known only at run time does not have the wanted type."""
    if not is_dynamic(argument.type):
        return argument
    value = context.code.stored(argument)
    if wanted in AMOUNTS:
        context.fail_if(f"not isinstance({value.text}, {context.code.known(AMOUNTS[wanted][1])})")
    else:
        context.fail_if(f"type({value.text}) is not {CLASSES[wanted]}")
    return value


CLASSES: Final = {BOOL: "bool", INT: "int", STRING: "str"}
