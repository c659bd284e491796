"""Log lines with a constant text and facts, in klog's format or as JSON.

`log.info("claim prepared", extra=facts(claim="ns/c", took=0.03))`. The subject of a whole task is bound once, with
`with bound(driver=…)`, for the task and the tasks that it starts. The text is constant, so that lines can be counted.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TextIO

_LETTERS = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}  # klog has no letter for debug
_VALUE_LIMIT = 4096  # characters of one value; more is cut

_bound: ContextVar[Mapping[str, Any]] = ContextVar("devlet_facts", default=MappingProxyType({}))


def facts(**values: Any) -> dict[str, Any]:
    """Return the argument for `extra=`. A value of None is left out."""
    return {"facts": values}


@contextmanager
def bound(**values: Any) -> Iterator[None]:
    """Add these facts to every line that is logged in the block and by the tasks started in it."""
    token = _bound.set({**_bound.get(), **values})
    try:
        yield
    finally:
        _bound.reset(token)


def bound_fact(name: str) -> Any:
    """Return the value of a fact that is bound here, or None."""
    return _bound.get().get(name)


def configure(format: str, verbosity: int = 0, stream: TextIO | None = None) -> None:
    """Log to `stream` (standard error) and nowhere else. Format is "text" or "json".

    Verbosity 0 logs changes, 1 adds each step, and 2 adds the log lines of libraries."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 2 else logging.WARNING)
    logging.getLogger("devlet").setLevel(logging.DEBUG if verbosity >= 1 else logging.INFO)


class TextFormatter(logging.Formatter):
    """`I1115 21:50:56.123456   12345 claims.py:12] "claim prepared" claim="ns/c" took=0.03`, then any traceback."""

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelno, "I")
        moment = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        head = f"{letter}{moment}.{micros:06d} {record.process or 0:7d} {record.filename}:{record.lineno}]"
        pairs = (f"{key}={_text(value)}" for key, value in _facts_of(record).items())
        line = " ".join([head, _quoted(record.getMessage()), *pairs])
        return "\n".join([line, *_traceback(record)])


class JsonFormatter(logging.Formatter):
    """One object per line: ts (seconds since 1970), level, caller, msg, then the facts; `err` has the error."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created, 6),
            "level": record.levelname.lower(),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        line.update((key, value) for key, value in _facts_of(record).items() if key not in line)
        if trace := _traceback(record):
            line["stacktrace"] = "\n".join(trace)
        return json.dumps(line, default=str)


def _facts_of(record: logging.LogRecord) -> dict[str, Any]:
    values = {**_bound.get(), **getattr(record, "facts", {})}
    if record.exc_info and record.exc_info[1] is not None:
        values.setdefault("err", record.exc_info[1])
    return {key: str(v) if isinstance(v, BaseException) else v for key, v in values.items() if v is not None}


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case list() | tuple() | dict():
            return _cut(json.dumps(value, default=str))
        case _:
            return _quoted(str(value))


def _quoted(text: str) -> str:
    """Return the text in double quotes, on one line and without control characters."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_cut("".join(c if c.isprintable() else _escape(c) for c in escaped))}"'


def _escape(char: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or f"\\u{ord(char):04x}"


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE_LIMIT else f"{text[:_VALUE_LIMIT]}…"


def _traceback(record: logging.LogRecord) -> list[str]:
    if not record.exc_info or record.exc_info[1] is None:
        return []
    return "".join(traceback.format_exception(record.exc_info[1])).rstrip().splitlines()
