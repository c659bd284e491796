"""Errors in an expression and their places, printed exactly as the reference prints them.

Offsets and columns count code points. The caret is drawn with wide characters below wide text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

NOWHERE: Final = -1
"""The offset of an issue without a place, such as a limit that was reached."""

_SHOWN: Final = 100
_LONGEST_SNIPPET: Final = 16384


@dataclass(frozen=True, slots=True)
class Issue:
    message: str
    offset: int = NOWHERE


class CompileError(Exception):
    """The expression does not compile. The text has all issues, each with its line of source and a caret."""

    def __init__(self, source: str, issues: Sequence[Issue]) -> None:
        super().__init__(render(source, issues))
        self.source = source
        self.issues = tuple(issues)


def render(source: str, issues: Iterable[Issue]) -> str:
    """Format the issues in the order of the source, at most a hundred of them."""
    found = list(issues)
    shown = sorted(found[:_SHOWN], key=lambda issue: issue.offset)
    texts = [_render_one(source, issue) for issue in shown]
    if len(found) > _SHOWN:
        texts.append(f"{len(found) - _SHOWN} more errors were truncated")
    return "\n".join(texts)


def _render_one(source: str, issue: Issue) -> str:
    if issue.offset < 0:
        return f"ERROR: <input>:-1:0: {issue.message}"
    if not source:
        return f"ERROR: <input>:1:0: {issue.message}"
    before = source[: issue.offset]
    line = before.count("\n") + 1
    start = before.rfind("\n") + 1
    column = issue.offset - start
    header = f"ERROR: <input>:{line}:{column + 1}: {issue.message}"
    text = source[start:].partition("\n")[0]
    if len(text.encode(errors="replace")) > _LONGEST_SNIPPET:
        return header
    shown = text.replace("\t", " ")
    return f"{header}\n | {shown}\n | {_pointer(text, column)}"


def _pointer(text: str, column: int) -> str:
    dots = "".join("." if character.isascii() else "\uff0e" for character in text[:column])
    return dots + ("^" if text[column : column + 1].isascii() else "\uff3e")
