"""The smallest part of a selector that makes a device not match, and the values in that part.

The selector is evaluated again with a trace, which is followed from the top: through `&&` to the false operand, through
`!` with the result inverted, through `? :` into the branch that was taken. What remains is the part that the user has
to look at.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from devlet.cel.ast import Call, Comprehension, Expr, Ident, ListLiteral, Literal, Select, children
from devlet.cel.evaluate import Evaluation
from devlet.cel.program import Program
from devlet.cel.unparse import expression_text
from devlet.cel.values import CelError, Optional, Value

__all__ = ["Missing", "Part", "deciding_part", "terms"]

_TEXT_MAX = 120


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that the device does not have. `kind` is attributes or capacity; `text` is the lookup as written."""

    kind: str
    domain: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a selector. `text` is the expression that is false or fails; `facts` are the values in it, such as
    `memory is 16Gi`."""

    text: str
    facts: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()


def deciding_part(program: Program, device: Value, give_up: Callable[[], bool] | None = None) -> Part:
    (variable,) = program.checked.environment.variables
    evaluation = program.evaluate({variable: device}, give_up=give_up, trace=True)
    return _Reader(program, evaluation).part()


def terms(program: Program) -> list[str]:
    """Return the operands that must all be true; one operand if the selector is not a chain of `&&`."""
    parsed = program.checked.parsed

    def split(node: Expr) -> list[Expr]:
        if isinstance(node, Call) and node.function == "_&&_":
            return [term for arg in node.args for term in split(arg)]
        return [node]

    return [parsed.source.snippet(node.id) or expression_text(node, parsed) for node in split(parsed.root)]


class _Reader:
    def __init__(self, program: Program, evaluation: Evaluation) -> None:
        self._parsed = program.checked.parsed
        self._trace = evaluation.trace
        self._error = evaluation.error

    def part(self) -> Part:
        root = self._parsed.root
        node = self._failing(root) if self._error else self._deciding(root)
        paths = list(self._paths(node))
        facts = dict.fromkeys(fact for path in paths if (fact := self._fact(path)))
        missing = dict.fromkeys(lost for path in paths if (lost := self._missing(path)))
        return Part(self._text(node), tuple(facts), tuple(missing))

    def _text(self, node: Expr) -> str:
        return self._parsed.source.snippet(node.id) or expression_text(node, self._parsed)

    def _value(self, node: Expr) -> Value:
        return self._trace.get(node.id)

    def _deciding(self, node: Expr) -> Expr:
        """Return the smallest part that decides the node's value."""
        result = self._value(node)
        match node:
            case Call(function="_&&_" | "_||_" as function, args=args):
                if result is (function == "_||_"):  # one operand decides
                    return self._deciding(next(arg for arg in args if self._value(arg) is result))
            case Call(function="_?_:_", args=(condition, then, otherwise)):
                return self._deciding(then if self._value(condition) is True else otherwise)
            case Call(function="!_", args=(operand,)):
                inner = self._deciding(operand)
                return node if inner is operand else inner
            case Comprehension(range=ListLiteral(elements=()), result=body) if body.id in self._trace:
                return self._deciding(body)  # cel.bind
        return node

    def _failing(self, node: Expr) -> Expr:
        """Return the smallest part around the failed lookup that contains more than the lookup."""
        for child in _children(node):
            if isinstance(self._value(child), CelError):
                deeper = self._failing(child)
                return node if deeper is child and self._is_path(child) and not _is_logic(node) else deeper
        return node

    # Values

    def _is_path(self, node: Expr) -> bool:
        return isinstance(node, Select | Call) and _root(node) is not None

    def _paths(self, node: Expr) -> Iterator[Expr]:
        """Yield the longest lookups in the part, such as `device.attributes["d"].x`."""
        if self._is_path(node):
            yield node
        else:
            for child in _children(node):
                yield from self._paths(child)

    def _fact(self, path: Expr) -> str:
        value = self._value(path)
        lost = self._missing(path)
        if lost:
            return f"{lost.name} is missing"
        if path.id not in self._trace or isinstance(value, CelError):
            return ""
        name = _last(path) or self._text(path)
        if isinstance(value, dict):
            return f"{_clip(self._text(path))} has {_clip(', '.join(map(str, value)) or 'nothing')}"
        return f"{name} is {shown(value)}" if not _is_test(path) else ""

    def _missing(self, path: Expr) -> Missing | None:
        value = self._value(path)
        absent = isinstance(value, CelError) and value.message.startswith("no such key")
        absent = absent or (_is_test(path) and value is False) or (isinstance(value, Optional) and not value.has_value)
        for node in _chain(path) if absent else ():
            match _step(node):
                case (operand, str() as name) if (domain := _step(operand)) and isinstance(domain[1], str):
                    kind = _step(domain[0])
                    if kind and kind[1] in ("attributes", "capacity"):
                        return Missing(str(kind[1]), domain[1], name, self._text(node))
        return None


def _children(node: Expr) -> tuple[Expr, ...]:
    """Return the children that have a single value. The body of a loop has many."""
    match node:
        case Comprehension(range=ListLiteral(elements=())):
            return (node.init, node.result)
        case Comprehension():
            return (node.range,)
        case _:
            return children(node)


def _step(node: Expr) -> tuple[Expr, Value] | None:
    """Split a lookup into its operand and its key; None for other nodes."""
    match node:
        case Select():
            return (node.operand, node.field)
        case Call(function="_[_]" | "_[?_]" | "_?._", args=(operand, Literal(value=key))):
            return (operand, key)
        case _:
            return None


def _chain(node: Expr) -> Iterator[Expr]:
    """Yield the lookup, then the lookups that it starts with."""
    while step := _step(node):
        yield node
        node = step[0]


def _root(node: Expr) -> Ident | None:
    while step := _step(node):
        node = step[0]
    return node if isinstance(node, Ident) else None


def _last(path: Expr) -> str:
    step = _step(path)
    return str(step[1]) if step else ""


def _is_test(node: Expr) -> bool:
    return isinstance(node, Select) and node.is_test


def _is_logic(node: Expr) -> bool:
    return isinstance(node, Call) and node.function in ("_&&_", "_||_", "_?_:_", "!_")


def shown(value: Value) -> str:
    """Format a value for people."""
    if isinstance(value, Optional):
        return shown(value.value) if value.has_value else "missing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _clip(f'"{value}"')
    if isinstance(value, list | tuple):
        return _clip(f"[{', '.join(map(shown, value))}]")
    return _clip(str(value))


def _clip(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
