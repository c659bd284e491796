"""Finds what is whole in JSON that is cut off or overwritten in places."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from devlet.state import go_json
from devlet.state.go_json import Malformed

MAX_FAILURES = 1_000  # objects that cannot be read, before the rest is given up

_OBJECT = re.compile(r'\{\s*"')

T = TypeVar("T")


def scan(
    text: str, take: Callable[[Any], T | None], label: Callable[[int], str | None], lost: list[str]
) -> Iterator[T]:
    """What `take` makes of the objects, wherever they stand; it is asked for those inside of one that it does not want.

    What cannot be read, by JSON or by `take`, goes to `lost` under the label of the place where it begins, if that has
    one."""
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
    """The value that begins there, and where it ends."""
    try:
        return go_json.DECODER.raw_decode(text, start)
    except json.JSONDecodeError as e:
        ended = e.pos >= len(text.rstrip()) or e.msg.startswith("Unterminated string")
        raise Malformed("the file ends before it does" if ended else f"not JSON at character {e.pos}") from e
    except RecursionError as e:
        raise Malformed("nested too deeply") from e
