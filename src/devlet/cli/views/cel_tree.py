"""An evaluated expression as a tree of subexpressions with their values.

Literals and the path to an attribute are left out. Parts of a macro such as `all` show the values of its last step.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from devlet.alloc.device_cel import DeviceInput
from devlet.cel.ast import Call, Comprehension, Expr, Ident, Literal, Select, children
from devlet.cel.checker import Checked
from devlet.cel.texts import double_text
from devlet.cel.types import Type, type_name
from devlet.cel.unparse import expression_text
from devlet.cel.values import CelError, Duration, Optional, Timestamp, Uint, Value

_TEXT_MAX: Final = 100
_VALUE_MAX: Final = 60
_DEPTH_MAX: Final = 20
_INDEX: Final = ("_[_]", "_[?_]", "_?._")
_MACRO_OF_NAMES: Final = ("bind", "optMap", "optFlatMap")

Trace = Mapping[int, Value | CelError]


def lines(checked: Checked, trace: Trace) -> Iterator[str]:
    """Yield `text = value` for each part, indented below the expression that contains it."""
    for depth, node in _nodes(checked, trace):
        yield f"{'  ' * depth}{_cut(_text(checked, node), _TEXT_MAX)} = {outcome(trace, node)}"


def documents(checked: Checked, trace: Trace) -> list[dict[str, Any]]:
    """Return the same as a flat list of JSON documents, with the depth of each part."""
    source = checked.parsed.source
    return [
        {"depth": depth, "expression": _text(checked, node), "value": outcome(trace, node)}
        | ({"column": source.spans[node.id][0] + 1} if node.id in source.spans else {})
        for depth, node in _nodes(checked, trace)
    ]


def _nodes(checked: Checked, trace: Trace) -> Iterator[tuple[int, Expr]]:
    """Yield depth and node, but nothing below a part that was not evaluated or that is written like its value."""
    waiting = [(0, checked.parsed.root)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        if depth < _DEPTH_MAX and node.id in trace:
            parts = [part for part in _parts(checked, node) if _text(checked, part) != outcome(trace, part)]
            waiting += [(depth + 1, part) for part in reversed(parts)]


def _parts(checked: Checked, node: Expr) -> list[Expr]:
    call = checked.parsed.macro_calls.get(node.id)
    if call is not None:
        return [] if isinstance(node, Select) else _macro_parts(call)
    found = [_base(part) if isinstance(node, Select) or _is_index(node) else part for part in children(node)]
    if _is_index(node):
        found = found[:1] + list(children(node)[1:])
    if isinstance(node, Select) or _is_index(node):
        found = [part for part in found if not isinstance(part, Ident)]
    return [part for part in found if not isinstance(part, Literal)]


def _macro_parts(call: Call) -> list[Expr]:
    """Return the parts of a macro call, without its variables."""
    names = 1 if call.function in _MACRO_OF_NAMES else max(1, len(call.args) - 1)
    if call.function in ("map", "filter", "transformList", "transformMap", "transformMapEntry"):
        names = 2 if call.function.startswith("transform") else 1
    target = [] if call.target is None or call.function == "bind" else [call.target]
    return [part for part in (*target, *call.args[names:]) if not isinstance(part, Literal)]


def _base(node: Expr) -> Expr:
    """Return the expression whose fields and indices are selected."""
    while isinstance(node, Select) or _is_index(node):
        node = children(node)[0]
    return node


def _is_index(node: Expr) -> bool:
    return isinstance(node, Call) and node.function in _INDEX and isinstance(node.args[1], Literal)


def _text(checked: Checked, node: Expr) -> str:
    written = checked.parsed.source.snippet(node.id)
    if not written and not isinstance(node, Comprehension):
        written = expression_text(node, checked.parsed)
    return " ".join(written.split()) or "…"


def outcome(trace: Trace, node: Expr) -> str:
    if node.id not in trace:
        return "not evaluated"
    return value_text(trace[node.id])


def value_text(value: Value | CelError) -> str:
    """Return a value as CEL writes it, if it can be written; long values are cut off."""
    return _cut(_written(value, 3), _VALUE_MAX)


def _written(value: Any, depth: int) -> str:
    match value:
        case CelError():
            return f"error: {value}"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Uint():
            return f"{int(value)}u"
        case float():
            return double_text(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return f"b{json.dumps(value.decode(errors='backslashreplace'))}"
        case Duration():
            return f"duration({value.nanoseconds / 1e9:g}s)"
        case Timestamp():
            return f"timestamp({value.nanoseconds / 1e9:.9g})"
        case Optional():
            return f"optional.of({_written(value.value, depth - 1)})" if value.has_value else "optional.none()"
        case Type():
            return value.type_name
        case DeviceInput():
            return "the device"
        case list() | tuple() | dict():
            return _container(value, depth)
        case int():
            return str(value)
    return f"{type_name(value).rpartition('.')[2].lower()}({json.dumps(str(value))})"


def _container(value: Any, depth: int) -> str:
    if depth <= 0:
        return "…"
    if isinstance(value, dict):
        return (
            f"{{{', '.join(f'{_written(k, depth - 1)}: {_written(v, depth - 1)}' for k, v in _some(value.items()))}}}"
        )
    return f"[{', '.join(_written(each, depth - 1) for each in _some(value))}]"


def _some(values: Any) -> list[Any]:
    """Return at most as many values as can be shown."""
    return [each for _, each in zip(range(_VALUE_MAX // 2), values, strict=False)]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
