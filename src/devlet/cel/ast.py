"""The tree of an expression after macro expansion.

Every node has an id; later results (its place, type, functions, cost) are kept in tables by id. Operators are calls of
functions whose names cannot be written in an expression, such as `_+_`, `_&&_`, `_?_:_`, `_[_]`, `@in`, `!_`.
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
    """`operand.field`. As a test (`has`) it is true if the field exists."""

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
    """A list literal. `optionals` are the indices of elements written `?x`."""

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
    """The expansion of macros such as `all` and `map`: a fold over a list or map.

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
    """Return the direct children of a node, in the order of the text."""
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
    """Yield every node, in no particular order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column as the reference counts them: lines from 1, columns of code points from 0 (printed from 1)."""

    line: int
    column: int


@dataclass(frozen=True)
class Source:
    """The text, with the position where each node's errors are shown (`positions`) and the text that the node covers
    (`spans`).

    Offsets count code points from 0. A node that a macro made has the position of the macro's call and may have no
    span.
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
        """Return the text of a node; empty if a macro made it."""
        start, end = self.spans.get(id, (0, 0))
        return self.text[start:end]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed expression. `macro_calls` maps the id of an expanded macro to the call as it was written."""

    root: Expr
    source: Source
    macro_calls: Mapping[int, Call]
