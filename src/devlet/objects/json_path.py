"""JSONPath as kubectl and printer columns of custom resources use it: templates and single paths.

    {.metadata.name}                       {.items[*].metadata.labels.a\\.b}      {.items[-1:]['kind','spec']}
    {range .items[*]}{.metadata.name}{"\\n"}{end}                                 {..image}
    {.status.conditions[?(@.type=="Ready")].status}

A path finds a list of values. The list is empty if something on the way is absent or of another type; a template then
prints nothing, as kubectl does. A template prints text outside of braces as it is.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from devlet.errors import InvalidInput

__all__ = ["MAX_LENGTH", "Path", "Template", "linear_path", "relaxed_path", "template", "text_of"]

MAX_LENGTH = 16_384
MAX_NESTED = 16  # ranges, and filters

Step = Callable[[Any, Any], Iterator[Any]]  # (root, value) → values

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_key = re.compile(r"(?:[^\s.,\[\](){}$@'\"\\=!<>]|\\.)+", re.DOTALL)
_slice = re.compile(r"\s*(-?\d{1,9})?\s*(?::\s*(-?\d{1,9})?\s*(?::\s*(-?\d{1,9})?\s*)?)?")
_string = re.compile(_STRING, re.DOTALL)
_number = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_operator = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")


@dataclass(frozen=True, slots=True)
class Path:
    steps: tuple[Step, ...]
    from_root: bool = False

    def find(self, value: Any, root: Any = None) -> list[Any]:
        """Return the values that the path finds in `value`, or in `root` if it starts with `$`."""
        root = value if root is None else root
        values = [root if self.from_root else value]
        for step in self.steps:
            values = [found for v in values for found in step(root, v)]
        return values


@dataclass(frozen=True, slots=True)
class _Range:
    path: Path
    body: "tuple[_Piece, ...]"


_Piece = str | Path | _Range


@dataclass(frozen=True, slots=True)
class Template:
    pieces: tuple[_Piece, ...]

    def render(self, document: Any) -> str:
        return "".join(_render(self.pieces, document, document))


def template(text: str) -> Template:
    """Parse a template. Raise InvalidInput if it is not valid."""
    return Template(_Parser(text).pieces())


def relaxed_path(text: str) -> Path:
    """Parse one path, in which the braces and the first dot may be left out: `{.a.b}`, `.a.b` and `a.b` are the same.

    Raise InvalidInput if it is not valid."""
    inside = _without_braces(text)
    return _whole_path(_Parser(inside if inside[:1] in ("", ".", "[", "$", "@") else f".{inside}"))


def linear_path(text: str) -> Path:
    """Parse one path that takes time in proportion to the size of the document: a server evaluates paths of others.

    The braces may be left out. Raise InvalidInput if the path is not valid, or has `..`, a union (`[0,1]`) or a filter
    with `$`, each of which can visit a value many times."""
    parser = _Parser(_without_braces(text))
    found = _whole_path(parser)
    if parser.costly:
        raise InvalidInput(f"JSONPath {_short(text)!r}: {parser.costly} is not supported here")
    return found


def text_of(value: Any) -> str:
    """Return a value as templates print it."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _without_braces(text: str) -> str:
    inside = text.strip()
    return inside[1:-1].strip() if inside.startswith("{") and inside.endswith("}") else inside


def _whole_path(parser: "_Parser") -> Path:
    found = parser.path()
    parser.expect_end()
    return found


def _render(pieces: tuple[_Piece, ...], root: Any, value: Any) -> Iterator[str]:
    for piece in pieces:
        match piece:
            case str():
                yield piece
            case Path():
                yield " ".join(text_of(found) for found in piece.find(value, root))
            case _Range(over, body):
                for found in over.find(value, root):
                    yield from _render(body, root, found)


class _Parser:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise InvalidInput(f"a JSONPath has at most {MAX_LENGTH} characters, this one has {len(text)}")
        self._text = text
        self._at = 0
        self._filters = 0  # in which the parser is
        self.costly = ""  # what visits a value more than once

    def pieces(self, ranges: int = 0) -> tuple[_Piece, ...]:
        found: list[_Piece] = []
        while self._at < len(self._text):
            brace = self._text.find("{", self._at)
            outside = self._text[self._at : brace if brace >= 0 else None]
            if outside:
                found.append(outside)
            self._at += len(outside)
            if brace < 0:
                break
            self._take("{")
            if self._word("end"):
                if not ranges:
                    raise self._problem("{end} without {range}")
                self._close()
                return tuple(found)
            found += self._action(ranges)
        if ranges:
            raise self._problem("{range} without {end}")
        return tuple(found)

    def _action(self, ranges: int) -> list[_Piece]:
        if self._word("range"):
            if ranges == MAX_NESTED:
                raise self._problem(f"more than {MAX_NESTED} nested ranges")
            over = self.path()
            self._close()
            return [_Range(over, self.pieces(ranges + 1))]
        found: list[_Piece] = []
        while not self._take("}", optional=True):
            found.append(self._literal_text() if self._peek() in ("'", '"') else self.path())
        return found

    def path(self) -> Path:
        self._space()
        from_root = self._peek() == "$"
        begun = self._at
        if self._peek() in ("$", "@"):
            self._at += 1
        steps: list[Step] = []
        while self._peek() in (".", "["):
            steps += self._bracket() if self._peek() == "[" else self._dot()
        if self._at == begun:
            raise self._problem("expected a path such as .metadata.name")
        return Path(tuple(steps), from_root)

    def _dot(self) -> list[Step]:
        steps: list[Step] = []
        self._take(".")
        if self._peek() == ".":
            self._take(".")
            steps.append(_descend)
            self.costly = ".."
        if self._peek() == "[":
            return steps
        if match := _key.match(self._text, self._at):
            self._at = match.end()
            name = re.sub(r"\\(.)", r"\1", match[0], flags=re.DOTALL)
            return [*steps, _each if match[0] == "*" else _field(name)]
        if steps:
            raise self._problem("expected a key after ..")
        return []  # `.` is the value itself

    def _bracket(self) -> list[Step]:
        self._take("[")
        self._space()
        if self._take("?", optional=True):
            step = self._filter()
        elif self._take("*", optional=True):
            step = _each
        else:
            step = self._union()
        self._space()
        self._take("]")
        return [step]

    def _union(self) -> Step:
        members = [self._member()]
        while self._take(",", optional=True):
            members.append(self._member())
            self.costly = "a union"
        return members[0] if len(members) == 1 else _union(members)

    def _member(self) -> Step:
        self._space()
        if self._peek() in ("'", '"'):
            return _field(self._literal_text())
        match = _slice.match(self._text, self._at)
        if match is None or not match[0].strip():
            raise self._problem("expected an index, a slice, a quoted key, * or ?(…)")
        self._at = match.end()
        first, last, step = (None if part is None else int(part) for part in match.groups())
        if step == 0:
            raise self._problem("a slice with step 0")
        if ":" not in match[0]:
            assert first is not None
            return _index(first)
        return _sliced(slice(first, last, step))

    def _filter(self) -> Step:
        if self._filters == MAX_NESTED:
            raise self._problem(f"more than {MAX_NESTED} nested filters")
        self._filters += 1
        self._take("(")
        left = self._operand()
        compare = None
        right: Path | None = None
        if match := _operator.match(self._text, self._at):
            self._at = match.end()
            compare = _OPERATORS[match[1]]
            right = self._operand()
        self._space()
        self._take(")")
        self._filters -= 1
        return _filtered(left, compare, right)

    def _operand(self) -> Path:
        self._space()
        if self._peek() in ("'", '"'):
            return _constant(self._literal_text())
        if match := _number.match(self._text, self._at):
            self._at = match.end()
            return _constant(float(match[0]) if "." in match[0] else int(match[0]))
        for word, value in (("true", True), ("false", False)):
            if self._word(word):
                return _constant(value)
        operand = self.path()
        if operand.from_root:
            self.costly = "$ in a filter"
        return operand

    def _literal_text(self) -> str:
        match = _string.match(self._text, self._at)
        if not match:
            raise self._problem("a quote that is not closed")
        self._at = match.end()
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match[0][1:-1], flags=re.DOTALL)

    def expect_end(self) -> None:
        self._space()
        if self._at < len(self._text):
            raise self._problem(f'unexpected "{self._text[self._at : self._at + 20]}"')

    def _close(self) -> None:
        self._space()
        self._take("}")

    def _word(self, word: str) -> bool:
        self._space()
        end = self._at + len(word)
        if self._text[self._at : end] != word or self._text[end : end + 1].isalnum():
            return False
        self._at = end
        return True

    def _take(self, expected: str, *, optional: bool = False) -> bool:
        if optional:
            self._space()
        if self._text.startswith(expected, self._at):
            self._at += len(expected)
            return True
        if optional:
            return False
        raise self._problem(f'expected "{expected}"')

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _space(self) -> None:
        while self._peek().isspace():
            self._at += 1

    def _problem(self, what: str) -> InvalidInput:
        return InvalidInput(f"JSONPath {_short(self._text)!r}, character {self._at + 1}: {what}")


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}…"


def _field(key: str) -> Step:
    def step(root: Any, value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and key in value:
            yield value[key]

    return step


def _index(index: int) -> Step:
    def step(root: Any, value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _sliced(part: slice) -> Step:
    def step(root: Any, value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[part]

    return step


def _union(members: list[Step]) -> Step:
    def step(root: Any, value: Any) -> Iterator[Any]:
        for member in members:
            yield from member(root, value)

    return step


def _each(root: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from (value[key] for key in sorted(value))


def _descend(root: Any, value: Any) -> Iterator[Any]:
    """Yield the value and everything in it, outermost first."""
    yield value
    for inner in _each(root, value):
        yield from _descend(root, inner)


def _constant(value: Any) -> Path:
    def step(root: Any, _: Any) -> Iterator[Any]:
        yield value

    return Path((step,))


def _filtered(left: Path, compare: Callable[[Any, Any], bool] | None, right: Path | None) -> Step:
    def keeps(root: Any, item: Any) -> bool:
        found = left.find(item, root)
        if compare is None or right is None:
            return bool(found)
        wanted = right.find(item, root)
        return bool(found and wanted) and _holds(compare, found[0], wanted[0])

    def step(root: Any, value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if keeps(root, item))

    return step


def _holds(compare: Callable[[Any, Any], bool], found: Any, wanted: Any) -> bool:
    """Compare two values. Values of different types are different and have no order."""
    if isinstance(found, bool) is not isinstance(wanted, bool):
        return compare is operator.ne
    try:
        return compare(found, wanted)
    except TypeError:
        return False
