"""The attributes and capacities that an expression uses, such as `device.attributes["gpu.example.com"].model`.

Computed names are not found, nor are names reached through the variable of a macro other than `cel.bind`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from devlet.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    Select,
    children,
)
from devlet.cel.checker import Checked

__all__ = ["Mention", "children", "mentions", "path_of"]

_INDEX = ("_[_]", "_[?_]", "_?._")
_DEPTH = 3  # kind, domain and name
_KINDS = ("attributes", "capacity")

Path = tuple[str, ...]
Scope = Mapping[str, Path | None]
"""What variables stand for: names after `device`, or None for other values."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A use of a name. `kind` is `attributes` or `capacity`; without a name the mention is of the domain. `node` is the
    id in the tree."""

    kind: str
    domain: str
    name: str
    node: int
    is_test: bool = False

    @property
    def noun(self) -> str:
        return "attribute" if self.kind == "attributes" else "capacity"

    @property
    def text(self) -> str:
        return f"{self.noun} {self.domain}/{self.name}" if self.name else f"domain {self.domain}"


def mentions(checked: Checked) -> list[Mention]:
    """Return the mentions in the order of the text, each name once per place."""
    found: list[Mention] = []
    waiting: list[tuple[Expr, Scope]] = [(checked.parsed.root, {})]
    while waiting:  # not recursive: trees can be deeper than Python's stack
        node, scope = waiting.pop()
        path = path_of(node, scope)
        if path and path[0] in _KINDS and len(path) > 1:
            found.append(_mention(path, node.id, _is_test(node)))
            continue
        if isinstance(node, Call) and node.function == "@in":
            found += _membership(node, scope)
        waiting += reversed(list(_inside(node, scope)))
    return found


def _mention(path: Path, node: int, is_test: bool) -> Mention:
    return Mention(path[0], path[1], path[2] if len(path) == _DEPTH else "", node, is_test)


def _inside(node: Expr, scope: Scope) -> Iterator[tuple[Expr, Scope]]:
    if not isinstance(node, Comprehension):
        yield from ((child, scope) for child in children(node))
        return
    if is_bind(node):
        bound = path_of(node.init, scope)
        yield from () if bound else ((node.init, scope),)
        yield node.result, {**scope, node.accumulator: bound}
        return
    yield from ((part, scope) for part in (node.range, node.init))
    inner = {**scope, node.variable: None, node.variable2: None, node.accumulator: None}
    yield from ((part, inner) for part in (node.condition, node.step, node.result))


def _membership(node: Call, scope: Scope) -> Iterator[Mention]:
    """Yield the mention in an expression such as `"model" in device.attributes["gpu.example.com"]`."""
    key, container = node.args
    path = path_of(container, scope)
    if isinstance(key, Literal) and isinstance(key.value, str) and path and len(path) < _DEPTH and path[0] in _KINDS:
        yield _mention((*path, key.value), node.id, True)


def path_of(node: Expr, scope: Scope) -> Path | None:
    """Return the names after `device`, or None if the expression does not start there or continues after a name."""
    names: list[str] = []
    while len(names) <= _DEPTH:
        match node:
            case Ident(name=name):
                start = scope.get(name, () if name == "device" else None)
                path = None if start is None else (*start, *reversed(names))
                return None if path is None or len(path) > _DEPTH else path
            case Select(operand=operand, field=field):
                names.append(field)
                node = operand
            case Call(function=function, args=(operand, Literal(value=str() as key))) if function in _INDEX:
                names.append(key)
                node = operand
            case _:
                return None
    return None


def _is_test(node: Expr) -> bool:
    if isinstance(node, Select):
        return node.is_test
    return isinstance(node, Call) and "?" in node.function


def is_bind(node: Comprehension) -> bool:
    """Return whether the expression is the expansion of `cel.bind`."""
    return isinstance(node.range, ListLiteral) and not node.range.elements and node.variable == "#unused"
