"""The tree of an expression, after macros are expanded.

Every node has an id; what is found out about it later (its place, type, functions, cost) is kept in tables by id.
Operators are calls of functions with names that cannot be written, such as `_+_`, `_&&_`, `_?_:_`, `_[_]`, `@in`, `!_`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from devlet.cel.values import Constant


@dataclass(frozen=True, slots=True)
class Literal:
    id: int
    value: Constant


@dataclass(frozen=True, slots=True)
class Ident:
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`; as a test (`has`) it is true if the field is there."""

    id: int
    operand: "Expr"
    field: str
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    id: int
    function: str
    target: "Expr | None"
    args: "tuple[Expr, ...]"


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`optionals` are the indices of elements written `?x`."""

    id: int
    elements: "tuple[Expr, ...]"
    optionals: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Entry:
    id: int
    key: "Expr"
    value: "Expr"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapLiteral:
    id: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Field:
    id: int
    name: str
    value: "Expr"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class StructLiteral:
    id: int
    type_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """What macros such as `all` and `map` become: a fold over a list or map.

    With `variable2` the first variable is the index or key and the second the element or value.
    """

    id: int
    range: "Expr"
    variable: str
    variable2: str
    accumulator: str
    init: "Expr"
    condition: "Expr"
    step: "Expr"
    result: "Expr"


Expr = Literal | Ident | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension


def children(node: Expr) -> tuple[Expr, ...]:
    """The nodes right below a node, in the order of the text."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return (node.target, *node.args) if node.target is not None else node.args
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case StructLiteral():
            return tuple(field.value for field in node.fields)
        case Comprehension():
            return (node.range, node.init, node.condition, node.step, node.result)
    return ()


def walk(root: Expr) -> Iterator[Expr]:
    """Every node, in no particular order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column as the reference counts them: lines from 1, columns of code points from 0 (shown from 1)."""

    line: int
    column: int


@dataclass(frozen=True)
class Source:
    """The text, where each node's error is shown (`positions`) and which part of the text it is (`spans`).

    Offsets count code points from 0. A node that a macro made has the position of the macro's call; its span may miss.
    """

    text: str
    positions: Mapping[int, int]
    spans: Mapping[int, tuple[int, int]]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, character in enumerate(self.text) if character == "\n")]

    def place(self, offset: int) -> Place:
        line = sum(start <= offset for start in self._line_starts)
        return Place(line, offset - self._line_starts[line - 1])

    def snippet(self, id: int) -> str:
        """The text of a node, empty if a macro made it."""
        start, end = self.spans.get(id, (0, 0))
        return self.text[start:end]


@dataclass(frozen=True, slots=True)
class Parsed:
    """`macro_calls` has, by the id of the node that a macro became, the call as it was written."""

    root: Expr
    source: Source
    macro_calls: Mapping[int, Call]
