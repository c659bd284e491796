"""Check `"%d".format([1])` statically: whether the clauses of a literal format fit the elements of a literal list.

The reference walks the bytes of the format, not its characters, which shows in its messages.
"""

from collections.abc import Mapping, Sequence

from devlet.cel.ast import Call, Expr, ListLiteral, Literal, MapLiteral
from devlet.cel.types import Kind, Type
from devlet.cel.values import INT_MAX

_INTEGERS = (Kind.INT, Kind.UINT)
_DOUBLES = (Kind.DOUBLE, Kind.STRING)  # a string for NaN and the infinities

_CLAUSES: Mapping[str, tuple[tuple[Kind, ...], str]] = {
    "d": (_INTEGERS, "decimal clause can only be used on integers"),
    "f": (_DOUBLES, "fixed-point clause can only be used on doubles"),
    "e": (_DOUBLES, "scientific clause can only be used on doubles"),
    "b": ((*_INTEGERS, Kind.BOOL), "only integers and bools can be formatted as binary"),
    "x": (
        (*_INTEGERS, Kind.STRING, Kind.BYTES),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (_INTEGERS, "octal clause can only be used on integers"),
}
_AS_STRING = (
    Kind.LIST,
    Kind.MAP,
    Kind.INT,
    Kind.UINT,
    Kind.DOUBLE,
    Kind.BOOL,
    Kind.STRING,
    Kind.TIMESTAMP,
    Kind.BYTES,
    Kind.DURATION,
    Kind.TYPE,
    Kind.NULL,
)
_NOT_A_STRING = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps"
)


class _Problem(Exception):
    def __init__(self, message: str, node: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


def format_problem(call: Call, overloads: Sequence[str], types: Mapping[int, Type]) -> tuple[int, str] | None:
    """Return the node to report and the problem; None if there is no problem or nothing to check."""
    if call.function != "format" or "string_format" not in overloads or len(call.args) != 1:
        return None
    template, arguments = call.target, call.args[0]
    if not isinstance(template, Literal) or not isinstance(template.value, str):
        return None
    if not isinstance(arguments, ListLiteral):
        return None
    try:
        _check(template.value, arguments.elements, types)
    except _Problem as problem:
        return problem.node or call.id, problem.message
    return None


def _check(template: str, arguments: Sequence[Expr], types: Mapping[int, Type]) -> None:
    text = template.encode().decode("latin-1")
    used = at = 0
    while (at := text.find("%", at)) >= 0:
        if text.startswith("%%", at):
            at += 2
            continue
        if at + 1 >= len(text):
            raise _Problem("unexpected end of string")
        if used >= len(arguments):
            raise _Problem(f"index {used} out of range")
        at = _precision_end(text, at + 1)
        _check_clause(text[at], arguments[used], types)
        at += 1
        used += 1
    if used < len(arguments):
        counts = f"expected {used}, got {len(arguments)}"
        raise _Problem(f"too many arguments supplied to string.format ({counts})")


def _precision_end(text: str, start: int) -> int:
    if text[start] != ".":
        return start
    end = start + 1
    while end < len(text) and text[end] in "0123456789":
        end += 1
    digits = text[start + 1 : end]
    parsing = "could not parse formatting clause: error while parsing precision:"
    if end == len(text):
        raise _Problem(f"{parsing} could not find end of precision specifier")
    if not digits or int(digits) > INT_MAX:
        reason = "value out of range" if digits else "invalid syntax"
        converting = f'error while converting precision to integer: strconv.Atoi: parsing "{digits}"'
        raise _Problem(f"{parsing} {converting}: {reason}")
    return end


def _check_clause(clause: str, argument: Expr, types: Mapping[int, Type]) -> None:
    if clause == "s":
        _check_string(argument, types)
        return
    if clause not in "dfebxXo":
        raise _Problem(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')
    kinds, message = _CLAUSES[clause.lower()]
    _require(argument, kinds, message, types)


def _check_string(argument: Expr, types: Mapping[int, Type]) -> None:
    _require(argument, _AS_STRING, _NOT_A_STRING, types)
    if isinstance(argument, ListLiteral):
        for element in argument.elements:
            _check_string(element, types)
    elif isinstance(argument, MapLiteral):
        for entry in argument.entries:
            _check_string(entry.key, types)
            _check_string(entry.value, types)


def _require(argument: Expr, kinds: Sequence[Kind], message: str, types: Mapping[int, Type]) -> None:
    t = types[argument.id]
    if t.kind is not Kind.DYN and t.kind not in kinds:
        raise _Problem(f"error during formatting: {message}, was given {t.type_name}", argument.id)
