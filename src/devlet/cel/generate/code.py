"""The Python source that is built while an expression is compiled, and its namespace.

No text of the user gets into the source. Names are numbered (`v1`, `t2`, `f3`) and values are in the namespace (`k4`).
Anything that can fail is on a line of its own: the line number in a traceback then identifies the failing node, at no
cost while nothing fails.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from devlet.cel.types import Type
from devlet.cel.values import Value

# Python's own limits are 20 nested blocks and 100 levels of indentation.
MAX_DEPTH: Final = 12
# Longer expressions are split with temporary variables, because Python's parser limits nesting.
_MAX_TEXT = 160

UNKNOWN: Final = object()

Keys = Mapping[str, int]
NO_KEYS: Final[Keys] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Operand:
    """A Python expression without side effects.

    `type` is certain, unlike the checker's types, which may be guesses where nothing is known. If there are `keys`,
    evaluation may fail with a KeyError of one of them, which is then the error of that key's node. A `simple` operand
    may be written several times. `constant` is its value, if known. A `bare` operand is the unboxed value of an
    optional, or ABSENT if there is none.
    """

    text: str
    type: Type
    keys: Keys = field(default_factory=dict)
    simple: bool = False
    constant: Value = UNKNOWN
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    keys: Keys = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    header: str
    body: "Body"


Body = list[Line | Block]


@dataclass(frozen=True, slots=True)
class Source:
    """The finished source. `keys` maps line numbers to the nodes that a KeyError there belongs to."""

    text: str
    namespace: dict[str, Value]
    keys: dict[int, Keys]
    is_fragile: bool = False


@dataclass(slots=True)
class Code:
    """The code under construction. `failures` counts the places that may fail: compare it before and after writing a
    part to learn whether the part can fail.

    `crashes` likewise counts places that may end the whole evaluation, as in the reference when it crashes. If such a
    place could be reached after an error, the code `is_fragile`: `evaluate` has to determine what happens after any
    error.
    """

    body: Body = field(default_factory=list)
    functions: Body = field(default_factory=list)
    namespace: dict[str, Value] = field(default_factory=dict)
    depth: int = 0
    failures: int = 0
    crashes: int = 0
    is_fragile: bool = False
    inexact: int = 0
    """While above 0, a KeyError may not be the final error, because a later error may replace it."""
    _names: dict[tuple[type, object], str] = field(default_factory=dict)
    _count: int = 0

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str, keys: Keys = NO_KEYS) -> Line:
        return Line(text, NO_KEYS if self.inexact else keys)

    def write(self, text: str, keys: Keys = NO_KEYS) -> None:
        self.body.append(self.line(text, keys))

    def nest(self, header: str, *lines: str) -> None:
        self.put(header, [Line(line) for line in lines])

    def put(self, header: str, body: Body) -> None:
        self.body.append(Block(header, body or [Line("pass")]))

    def may_fail(self) -> None:
        self.failures += 1

    @contextmanager
    def apart(self, depth: int = 1) -> Iterator[Body]:
        """Collect the code written inside, which the caller inserts later, at most `depth` blocks further in."""
        outer, self.body = self.body, []
        self.depth += depth
        try:
            yield self.body
        finally:
            self.body = outer
            self.depth -= depth

    @contextmanager
    def function(self, name: str, parameters: list[str]) -> Iterator[None]:
        """Write a function. The code written inside is its body."""
        outer, self.depth = self.depth, 0
        with self.apart() as body:
            yield
        self.depth = outer
        self.functions.append(Block(f"def {name}({', '.join(parameters)}):", body))

    def known(self, value: Value) -> str:
        """Return a name for a constant of the generator or of the user."""
        key = (type(value), value if isinstance(value, str | bytes | int) else id(value))
        if key not in self._names:
            self._names[key] = self.fresh("k")
            self.namespace[self._names[key]] = value
        return self._names[key]

    def constant(self, value: Value, type: Type) -> Operand:
        return Operand(self.known(value), type, simple=True, constant=value)

    def combined(self, text: str, type: Type, *parts: Operand) -> Operand:
        """Return an expression that fails only if one of its parts does."""
        keys = {key: node for part in parts for key, node in part.keys.items()}
        operand = Operand(text, type, keys=keys or NO_KEYS)
        return self.stored(operand) if len(text) > _MAX_TEXT else operand

    def stored(self, operand: Operand) -> Operand:
        """Store the value in a variable, which cannot fail from then on."""
        if operand.simple:
            return operand
        name = self.fresh("t")
        self.write(f"{name} = {operand.text}", operand.keys)
        if operand.keys:
            self.may_fail()
        return Operand(name, operand.type, simple=True, bare=operand.bare)

    def settled(self, operand: Operand) -> Operand:
        """Return the operand itself if it cannot fail, otherwise a variable with its value."""
        return self.stored(operand) if operand.keys else operand

    def called(self, function: Value, *arguments: Operand, type: Type) -> Operand:
        """Store the result of one of the package's functions, which may raise CelError."""
        name = self.fresh("t")
        texts = ", ".join(argument.text for argument in arguments)
        self.write(f"{name} = {self.known(function)}({texts})")
        self.may_fail()
        return Operand(name, type, simple=True)

    def finish(self) -> Source:
        rows: list[tuple[int, Line]] = []
        _flatten([*self.functions, *self.body], 0, rows)
        text = "\n".join(" " * depth + line.text for depth, line in rows)
        keys = {number: line.keys for number, (_, line) in enumerate(rows, 1) if line.keys}
        return Source(text, self.namespace, keys, self.is_fragile)


def _flatten(body: Body, depth: int, rows: list[tuple[int, Line]]) -> None:
    for item in body:
        if isinstance(item, Line):
            rows.append((depth, item))
        else:
            rows.append((depth, Line(item.header)))
            _flatten(item.body, depth + 1, rows)
