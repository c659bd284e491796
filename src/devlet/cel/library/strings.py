"""Functions on strings: `charAt`, `indexOf`, `split`, `replace`, `substring`, `join`, `format` and others.

Positions count code points. Two versions: until Kubernetes 1.28 without `format` and `strings.quote` (STRINGS_0), since
then with them (STRINGS_2).
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

from devlet.cel.functions import (
    UNBOUNDED,
    CallEstimate,
    CostOf,
    Estimator,
    Function,
    Library,
    Overload,
    Range,
    SizedNode,
)
from devlet.cel.library.ranges import (
    ANY_SIZE,
    STRING_FACTOR,
    actual_size,
    check_steps,
    plus,
    scaled,
    scan_cost,
    size_of,
    times,
    traversal_cost,
)
from devlet.cel.library.string_format import format_text
from devlet.cel.texts import key_text
from devlet.cel.types import DYN, INT, STRING, Type, list_of
from devlet.cel.values import CelError, Value

_TWICE: Final = 2 * STRING_FACTOR
# Unicode white space; Python's strip() would also remove the four information separators.
_SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED: Final = str.maketrans(
    {
        "\a": r"\a",
        "\b": r"\b",
        "\f": r"\f",
        "\n": r"\n",
        "\r": r"\r",
        "\t": r"\t",
        "\v": r"\v",
        "\\": r"\\",
        '"': r"\"",
    }
)


# Functions


def char_at(text: str, position: int) -> str:
    _check(position, text)
    return text[position : position + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """Return the last index that is not after `start`."""
    if not part:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(new) > len(old):
        check_steps(len(text) + text.count(old) * len(new))
    return text.replace(old, new, max(count, -1))


def split(text: str, separator: str, count: int = -1) -> list[str]:
    """Split the text. An empty separator splits it into code points."""
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        _check(start, text)
        return text[start:]
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    _check(start, text)
    _check(end, text)
    return text[start:end]


def trim(text: str) -> str:
    return text.strip(_SPACES)


def join(parts: Sequence[Value], separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise CelError(f"join: invalid input: {key_text(part)}")
    check_steps(len(parts) * len(separator))
    return separator.join(parts)


def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _check(position: int, text: str) -> None:
    if not 0 <= position <= len(text):
        raise CelError(f"index out of range: {position}")


# Costs


def traversal_of_target(args: Sequence[Value], result: Value) -> int:
    return traversal_cost(args[0])


def _join_cost(args: Sequence[Value], result: Value) -> int:
    return ceil(float(actual_size(result)) * _TWICE)


def _scan_target(factor: float, keeps_size: bool) -> Estimator:
    def estimate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
        if target is None:
            return None
        return CallEstimate(scaled(size_of(target), factor), size_of(target) if keeps_size else None)

    return estimate


def _estimate_replace(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    if target is None:
        return None
    size, old, new = size_of(target), size_of(args[0]), size_of(args[1])
    most, most_kept = _replacements(size.max, old.min, new.max <= old.min)
    least, least_kept = _replacements(size.min, old.max, old.max <= new.min)
    result = plus(times(Range(least, most), new), Range(least_kept, most_kept))
    return CallEstimate(scaled(size, _TWICE), result)


def _replacements(size: int, old: int, changes_nothing: bool) -> tuple[int, int]:
    """Return how many replacements there are, and how much of the text remains, in the extreme case."""
    if old == 0:
        return min(size + 1, UNBOUNDED), size
    if changes_nothing:
        return 0, size
    return min(ceil(float(size) / float(old)), UNBOUNDED), 0


def _estimate_split(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    if target is None:
        return None
    size = size_of(target)
    most = size.max
    if len(args) > 1 and args[1].is_literal and type(args[1].literal) is int:
        most = args[1].literal & UNBOUNDED
    return CallEstimate(scaled(size, _TWICE), Range(0, most))


def _estimate_join(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    if target is None:
        return None
    elements = size_of(target)
    size = times(elements, target.items or ANY_SIZE) if target.type.params else Range(0, 0)
    if args:
        between = Range(max(elements.min - 1, 0), max(elements.max - 1, 0))
        size = plus(size, times(size_of(args[0]), between))
    return CallEstimate(scaled(size, STRING_FACTOR), size)


def _estimate_quote(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    """Estimate the cost. The reference's sum wraps around if the size is unknown."""
    size = size_of(args[0])
    result = Range(size.min + 2 & UNBOUNDED, size.max * 2 + 2 & UNBOUNDED)
    return CallEstimate(scaled(size, STRING_FACTOR), result)


# Library


def _method(
    name: str,
    call: Callable[..., Value],
    result: Type,
    *overloads: tuple[str, tuple[Type, ...]],
    estimate: Estimator | None = None,
    cost: CostOf | None = None,
) -> Function:
    return Function(name, tuple(Overload(id, params, result, call, True, estimate, cost) for id, params in overloads))


_ONCE: Final = _scan_target(STRING_FACTOR, keeps_size=True)
_SEARCH: Final = _scan_target(STRING_FACTOR, keeps_size=False)
_LIST: Final = list_of(STRING)

_COMMON: Final = (
    _method("charAt", char_at, STRING, ("string_char_at_int", (STRING, INT))),
    _method(
        "indexOf",
        index_of,
        INT,
        ("string_index_of_string", (STRING, STRING)),
        ("string_index_of_string_int", (STRING, STRING, INT)),
        estimate=_SEARCH,
        cost=traversal_of_target,
    ),
    _method(
        "lastIndexOf",
        last_index_of,
        INT,
        ("string_last_index_of_string", (STRING, STRING)),
        ("string_last_index_of_string_int", (STRING, STRING, INT)),
        estimate=_SEARCH,
        cost=traversal_of_target,
    ),
    _method("lowerAscii", lower_ascii, STRING, ("string_lower_ascii", (STRING,)), estimate=_ONCE, cost=scan_cost()),
    _method(
        "replace",
        replace,
        STRING,
        ("string_replace_string_string", (STRING, STRING, STRING)),
        ("string_replace_string_string_int", (STRING, STRING, STRING, INT)),
        estimate=_estimate_replace,
        cost=scan_cost(_TWICE),
    ),
    _method(
        "split",
        split,
        _LIST,
        ("string_split_string", (STRING, STRING)),
        ("string_split_string_int", (STRING, STRING, INT)),
        estimate=_estimate_split,
        cost=scan_cost(_TWICE),
    ),
    _method(
        "substring",
        substring,
        STRING,
        ("string_substring_int", (STRING, INT)),
        ("string_substring_int_int", (STRING, INT, INT)),
        estimate=_ONCE,
        cost=scan_cost(),
    ),
    _method("trim", trim, STRING, ("string_trim", (STRING,)), estimate=_ONCE, cost=scan_cost()),
    _method("upperAscii", upper_ascii, STRING, ("string_upper_ascii", (STRING,)), estimate=_ONCE, cost=scan_cost()),
    _method(
        "join",
        join,
        STRING,
        ("list_join", (_LIST,)),
        ("list_join_string", (_LIST, STRING)),
        estimate=_estimate_join,
        cost=_join_cost,
    ),
)

_SINCE_1: Final = (
    _method(
        "format",
        format_text,
        STRING,
        ("string_format", (STRING, list_of(DYN))),
        estimate=_SEARCH,
        cost=scan_cost(),
    ),
    Function(
        "strings.quote",
        (Overload("strings_quote", (STRING,), STRING, quote, estimate=_estimate_quote, cost=scan_cost()),),
    ),
)

STRINGS_0: Final = Library("cel.lib.ext.strings", _COMMON)
STRINGS_2: Final = Library("cel.lib.ext.strings", (*_COMMON, *_SINCE_1))
