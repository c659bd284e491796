"""Find complete objects in truncated or partly overwritten JSON."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from devlet.state import go_json
from devlet.state.go_json import Malformed

MAX_FAILURES = 1_000  # unreadable objects, before the rest is skipped

_OBJECT = re.compile(r'\{\s*"')

T = TypeVar("T")


def scan(
    text: str, take: Callable[[Any], T | None], label: Callable[[int], str | None], lost: list[str]
) -> Iterator[T]:
    """Yield what `take` returns for the objects, wherever they are. If it returns None, the objects inside are tried.

    Objects that cannot be parsed, or that `take` refuses, are added to `lost` with the label of the place where they
    begin, if it has one."""
    position = failures = 0
    while start := _OBJECT.search(text, position):
        position = start.end()
        try:
            value, end = value_at(text, start.start())
            if (found := take(value)) is None:
                continue
        except Malformed as e:
            failures += 1
            if failures > MAX_FAILURES:
                lost.append(f"all from character {start.start()}: more than {MAX_FAILURES} places are damaged")
                return
            if name := label(start.start()):
                lost.append(f"{name}: {e}")
            continue
        position = end
        yield found


def value_at(text: str, start: int) -> tuple[Any, int]:
    """Return the value that begins there, and its end."""
    try:
        return go_json.DECODER.raw_decode(text, start)
    except json.JSONDecodeError as e:
        ended = e.pos >= len(text.rstrip()) or e.msg.startswith("Unterminated string")
        raise Malformed("the file ends before it does" if ended else f"not JSON at character {e.pos}") from e
    except RecursionError as e:
        raise Malformed("nested too deeply") from e
