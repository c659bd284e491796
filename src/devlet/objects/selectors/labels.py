"""Label selectors: the string form of requests (`app=web,tier notin (cache)`) and the LabelSelector document.

An empty selector and an empty document select everything. A missing document selects nothing. `!=` and `notin` also
select objects without the label.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from devlet.errors import BadRequest, InvalidInput
from devlet.objects import names

Labels = Mapping[str, str]
Operator = Literal["in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"]

MAX_TEXT: Final = 64 * 1024

_BINARY: dict[str, Operator] = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_DOCUMENT: dict[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_SYMBOLS = frozenset(("==", "!=", *"=!(),<>"))

_token = re.compile(r"[ \t\r\n]*+(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]++)").findall
_integer = re.compile(r"[-+]?[0-9]{1,64}").fullmatch


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. `requirement` creates and checks it."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value is not None and value in self.values
            case "notin" | "!=":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        number = None if value is None else int64(value)
        bound = int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "gt" else number < bound

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.values[0]}"
        return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A selector for labels that meet all requirements. Its string form is canonical and parses to an equal
    selector."""

    requirements: tuple[Requirement, ...] = ()
    selects_nothing: bool = False

    def matches(self, labels: Labels | None) -> bool:
        if self.selects_nothing:
            return False
        labels = labels or {}
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def selects_everything(self) -> bool:
        return not self.requirements and not self.selects_nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(selects_nothing=True)


def parse(text: str) -> LabelSelector:
    """Parse the string form. Raises BadRequest that says what was found and what was expected."""
    if len(text) > MAX_TEXT:
        raise BadRequest(f"label selector has {len(text)} characters, at most {MAX_TEXT} are allowed")
    return _selector(_Parser(_token(text)).requirements())


def from_labels(labels: Labels) -> LabelSelector:
    """Select objects that have all these labels, as a pod's `spec.nodeSelector` does."""
    return _selector(requirement(key, "=", (value,)) for key, value in labels.items())


def from_document(document: object, path: str = "") -> LabelSelector:
    """Parse a LabelSelector document; `path` is its place, for errors."""
    if document is None:
        return NOTHING
    prefix = f"{path}." if path else ""
    selector = _typed(document, dict, path or "selector", "an object")
    labels = _typed(selector.get("matchLabels") or {}, dict, f"{prefix}matchLabels", "an object")
    expressions = _typed(selector.get("matchExpressions") or [], list, f"{prefix}matchExpressions", "a list")
    found: list[Requirement] = []
    for key, value in labels.items():
        at = f"{prefix}matchLabels"
        found.append(requirement(key, "=", (_typed(value, str, f"{at}[{key}]", "a string"),), at))
    for index, expression in enumerate(expressions):
        found.append(expression_requirement(expression, _DOCUMENT, f"{prefix}matchExpressions[{index}]"))
    return _selector(found)


def expression_requirement(expression: object, operators: Mapping[str, Operator], path: str) -> Requirement:
    """Parse `{key, operator, values}`, whose operator must be one of `operators`."""
    fields = _typed(expression, dict, path, "an object")
    name = fields.get("operator", "")
    operator = operators.get(name) if isinstance(name, str) else None
    if operator is None:
        supported = ", ".join(f'"{known}"' for known in operators)
        raise InvalidInput(f"{path}.operator: Unsupported value: {_quoted(name)}: supported values: {supported}")
    key = _typed(fields.get("key", ""), str, f"{path}.key", "a string")
    listed = _typed(fields.get("values") or [], list, f"{path}.values", "a list")
    values = tuple(_typed(value, str, f"{path}.values[{i}]", "a string") for i, value in enumerate(listed))
    return requirement(key, operator, values, path)


def requirement(key: str, operator: Operator, values: tuple[str, ...], path: str = "") -> Requirement:
    """Return a checked requirement. Raises InvalidInput if key or values are invalid."""
    prefix = f"{path}." if path else ""
    errors = [f"{prefix}key: Invalid value: {_quoted(key)}: {'; '.join(e)}" for e in (names.label_key(key),) if e]
    if wrong := _wrong_count(operator, len(values)):
        errors.append(f"{prefix}values: Invalid value: {_quoted(values)}: {wrong}")
    for index, value in enumerate(values):
        at = f"{prefix}values[{index}]"
        if operator in ("gt", "lt") and int64(value) is None:
            wrong = "for 'Gt', 'Lt' operators, the value must be an integer"
            errors.append(f"{at}: Invalid value: {_quoted(value)}: {wrong}")
        if found := names.label_value(value):
            errors.append(f"{at}[{key}]: Invalid value: {_quoted(value)}: {'; '.join(found)}")
    if errors:
        raise InvalidInput(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return Requirement(key, operator, values)


def int64(text: str) -> int | None:
    """Return the string as a number, if it is one that fits 64 bits."""
    if not _integer(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def _wrong_count(operator: Operator, count: int) -> str:
    match operator:
        case "in" | "notin":
            return "" if count else "for 'in', 'notin' operators, values set can't be empty"
        case "=" | "==" | "!=":
            return "" if count == 1 else "exact-match compatibility requires one single value"
        case "gt" | "lt":
            return "" if count == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"
    return "values set must be empty for exists and does not exist" if count else ""


def _selector(requirements: Iterable[Requirement]) -> LabelSelector:
    return LabelSelector(tuple(sorted(requirements, key=lambda r: r.key)))


def _quoted(value: object) -> str:
    if isinstance(value, str):
        value = value.encode(errors="replace").decode()
    return msgspec.json.encode(value).decode()


def _typed(value: Any, type_: type[Any], path: str, what: str) -> Any:
    if not isinstance(value, type_):
        raise InvalidInput(f"{path}: Invalid value: must be {what}")
    return value


class _Parser:
    """A recursive descent parser. `in` and `notin` are operators only where an operator may stand, so both can be
    keys."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while token := self._peek():
            if not _is_key(token):
                raise BadRequest(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except InvalidInput as e:
                raise BadRequest(f"unable to parse requirement: {e}") from e
            if not (token := self._next()):
                break
            if token != ",":
                raise BadRequest(f"found '{token}', expected: ',' or 'end of string'")
            if not _is_key(token := self._peek()):
                raise BadRequest(f"found '{token}', expected: identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        key = self._next()
        if absent := key == "!":
            key = self._next()
        if not _is_word(key):
            raise InvalidInput(f"found '{key}', expected: identifier")
        if absent or self._peek() in ("", ","):
            return requirement(key, "!" if absent else "exists", ())
        # An invalid key is reported before any error after it.
        requirement(key, "exists", ())
        token = self._next()
        operator = _BINARY.get(token)
        if operator is None:
            raise InvalidInput(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._set() if operator in ("in", "notin") else {self._value()}
        return requirement(key, operator, tuple(sorted(values)))

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        if not _is_word(token := self._next()):
            raise InvalidInput(f"found '{token}', expected: identifier")
        return token

    def _set(self) -> set[str]:
        if (token := self._next()) != "(":
            raise InvalidInput(f"found '{token}' expected: '('")
        token = self._peek()
        if not _is_word(token) and token not in (",", ")"):
            raise InvalidInput(f"found '{token}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add(self._next() if _is_word(self._peek()) else "")
            if (token := self._next()) == ")":
                return values
            if token != ",":
                raise InvalidInput(f"found '{token}', expected: ',' or ')'")
            if not _is_word(token := self._peek()) and token not in (",", ")"):
                raise InvalidInput(f"found '{token}', expected: ',', or identifier")


def _is_word(token: str) -> bool:
    return bool(token) and token not in _SYMBOLS


def _is_key(token: str) -> bool:
    return token == "!" or _is_word(token)
