"""Regular expressions: the language's `matches` and Kubernetes' `find` and `findAll`, on RE2.

RE2 takes time linear in the text for every pattern, which is why no other engine is used. Patterns match anywhere in
the text unless they contain `^` or `$`. Error texts are those of the library that the reference uses.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Final

import re2

from devlet.cel import pattern_work
from devlet.cel.functions import CallEstimate, Function, Library, Overload, Range, SizedNode
from devlet.cel.library.ranges import (
    ONE,
    REGEX_FACTOR,
    STRING_FACTOR,
    actual_size,
    check_steps,
    plus,
    scaled,
    size_of,
    times,
)
from devlet.cel.operators import NO_OVERLOAD, unsupported
from devlet.cel.types import BOOL, INT, STRING, list_of
from devlet.cel.values import CelError, Value

_MESSAGES: Final = {
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class": "invalid character class",
    "invalid character class range": "invalid character class range",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid UTF-8": "invalid UTF-8",
    "invalid named capture group": "invalid named capture",
}


# For each match it finds, a pattern may look at the whole rest of the text.
_BYTES_PER_STEP: Final = 16

# The reference does not support single bytes. Text between \Q and \E contains no escapes.
_escapes = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL).finditer


# RE2's constructor cannot be interrupted, so no pattern may take it longer than 20 ms. Parsing takes longest for
# Unicode classes, because each has some hundred ranges. The limit on memory also limits the time to compile.
MAX_LENGTH: Final = 4096  # bytes
MAX_CLASSES: Final = 64  # \p{...} and \P{...}
MAX_MEMORY: Final = 1 << 20  # bytes
_REFUSED_WORK: Final = 16_384  # as much as the largest pattern
_CLASS_WORK: Final = 128

_OVER_MEMORY: Final = "pattern too large"  # RE2's error text

_SHORT: Final = 64
_DEEPEST: Final = 1000  # nested groups
_KNOWN_MAX: Final = 1024


class PatternTooLarge(CelError):
    """A pattern that would take too long to compile, whether or not it is valid."""


class Pattern:
    """A compiled pattern. Positions refer to the UTF-8 text, so a long text is encoded once.

    Results for short texts are cached: thousands of devices have only a few models.
    """

    __slots__ = ("_known", "_search", "text", "work")

    def __init__(self, text: str) -> None:
        self.text = text
        self._known: dict[str, bool] = {}
        self.work = 0
        if _depth(text) > _DEEPEST:
            raise CelError(f"error parsing regexp: expression nests too deeply: `{text}`")
        _check_size(text)
        if any(escape[1] == "C" for escape in _escapes(text)):
            raise CelError(r"error parsing regexp: invalid escape sequence: `\C`")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_MEMORY
        try:
            made = re2.compile(_encoded(text), options)
        except re2.error as error:
            raise _error(error, text) from None
        self._search = made.search
        self.work = made.programsize + len(text) + _CLASS_WORK * _classes(text)

    def matches(self, text: str) -> bool:
        found = self._known.get(text)
        if found is None:
            found = self._search(_encoded(text)) is not None
            if len(text) <= _SHORT and len(self._known) < _KNOWN_MAX:
                self._known[text] = found
        return found

    def find(self, text: str) -> str:
        """Return the first match; empty if there is none."""
        match = self._search(_encoded(text))
        return str(match[0].decode(errors="replace")) if match else ""

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return the matches, which do not overlap; an empty match directly after another does not count."""
        source = _encoded(text)
        found: list[str] = []
        position, last_end = 0, -1
        while len(found) != limit and position <= len(source) and (match := self._search(source, position)):
            check_steps(len(found) * len(source) // _BYTES_PER_STEP)
            start, end = match.span()
            if end > position or start != last_end:
                found.append(source[start:end].decode(errors="replace"))
            position = end if end > position else _next_character(source, position)
            last_end = end
        return found


def _check_size(pattern: str) -> None:
    length, classes = len(_encoded(pattern)), _classes(pattern)
    if length > MAX_LENGTH:
        raise _too_large(f"{length} bytes, limit {MAX_LENGTH}", pattern)
    if classes > MAX_CLASSES:
        raise _too_large(f"{classes} Unicode classes, limit {MAX_CLASSES}", pattern)


def _classes(pattern: str) -> int:
    return pattern.count("\\p") + pattern.count("\\P")


def _depth(pattern: str) -> int:
    """Return an upper bound of the nesting of groups: parentheses in classes and escapes are also counted."""
    deepest = depth = 0
    for character in pattern if pattern.count("(") > _DEEPEST else "":
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _next_character(source: bytes, position: int) -> int:
    position += 1
    while position < len(source) and source[position] & 0xC0 == 0x80:
        position += 1
    return position


def _too_large(reason: str, pattern: str) -> PatternTooLarge:
    return PatternTooLarge(f"error parsing regexp: expression too large: {reason}: `{pattern}`")


def _error(error: Exception, text: str) -> CelError:
    said = error.args[0] if error.args else ""
    said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    for ours, theirs in _MESSAGES.items():
        if said == ours or said.startswith(f"{ours}: "):
            return CelError(f"error parsing regexp: {theirs}: `{said[len(ours) + 2 :]}`")
    return _too_large(f"more than {MAX_MEMORY} bytes when compiled" if said.startswith(_OVER_MEMORY) else said, text)


def compiled(pattern: str) -> Pattern:
    """Raise CelError if the pattern is invalid or too large, and CostExceeded if the patterns exceed their budget."""
    found = _compiled(pattern)
    meter = pattern_work.current()
    if meter is not None and meter.counts_known:
        meter.add(found.work)
    return found


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Pattern:
    meter = pattern_work.current()
    try:
        made = Pattern(pattern)
    except CelError:
        if meter is not None:
            meter.add(_REFUSED_WORK)
        raise
    if meter is not None and not meter.counts_known:
        meter.add(made.work)
    return made


def matches(text: Value, pattern: Value) -> bool:
    if not isinstance(text, str):
        raise unsupported("matches", text)
    if not isinstance(pattern, str):
        raise CelError(NO_OVERLOAD)
    return compiled(pattern).matches(text)


def find(text: str, pattern: str) -> str:
    return _legal(pattern).find(text)


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _legal(pattern).find_all(text, limit)


def _legal(pattern: str) -> Pattern:
    try:
        return compiled(pattern)
    except CelError as error:
        raise CelError(f"Illegal regex: {error.message}") from None


def _cost(args: Sequence[Value], result: Value) -> int:
    text = ceil((1.0 + actual_size(args[0])) * STRING_FACTOR)
    return text * ceil(float(actual_size(args[1])) * REGEX_FACTOR)


def _estimated_cost(text: SizedNode, pattern: SizedNode) -> Range:
    return times(scaled(plus(size_of(text), ONE), STRING_FACTOR), scaled(size_of(pattern), REGEX_FACTOR))


def _estimate_matches(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    return CallEstimate(_estimated_cost(target, args[0])) if target else None


def _estimate_find(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    if target is None:
        return None
    return CallEstimate(_estimated_cost(target, args[0]), Range(0, size_of(target).max))


MATCHES: Final = Function(
    "matches",
    (
        Overload("matches", (STRING, STRING), BOOL, matches),
        Overload(
            "matches_string",
            (STRING, STRING),
            BOOL,
            matches,
            is_member=True,
            estimate=_estimate_matches,
            cost=_cost,
        ),
    ),
    dispatch=matches,
)
"""Part of the language, so in `standard`; the called-as-a-function form costs one unit, as in the reference."""

LIBRARY: Final = Library(
    "kubernetes.regex",
    (
        Function(
            "find",
            (
                Overload(
                    "string_find_string", (STRING, STRING), STRING, find, True, estimate=_estimate_find, cost=_cost
                ),
            ),
        ),
        Function(
            "findAll",
            (
                Overload(
                    "string_find_all_string",
                    (STRING, STRING),
                    list_of(STRING),
                    find_all,
                    True,
                    estimate=_estimate_find,
                    cost=_cost,
                ),
                Overload(
                    "string_find_all_string_int",
                    (STRING, STRING, INT),
                    list_of(STRING),
                    find_all,
                    True,
                    estimate=_estimate_find,
                    cost=_cost,
                ),
            ),
        ),
    ),
)
