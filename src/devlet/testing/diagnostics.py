"""The state of running programs and nodes, for the report of a failed wait.

A running part attaches a function that describes it. When a wait fails, `collect` calls the functions of all attached
parts, because by the time pytest reports the failure the parts have been stopped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

__all__ = ["attach", "collect"]

MARK = "\n--- "  # before the name of each part
SHOWN = 6_000  # characters per part

_numbers = count()
_parts: dict[int, tuple[str, Callable[[], str]]] = {}


@contextmanager
def attach(name: str, describe: Callable[[], str]) -> Iterator[None]:
    """Have failed waits show what `describe` returns, for as long as the block runs."""
    number = next(_numbers)
    _parts[number] = (name, describe)
    try:
        yield
    finally:
        del _parts[number]


def collect() -> str:
    """Return a paragraph per attached part, or an empty string. A part that cannot be described gets its error."""
    return "".join(f"{MARK}{name}\n{_described(describe)}" for name, describe in list(_parts.values()))


def _described(describe: Callable[[], str]) -> str:
    try:
        text = describe()
    except Exception as e:  # the wait that failed is what matters, not this
        text = f"(cannot be described: {e!r})"
    return text if len(text) <= SHOWN else f"(…)\n{text[-SHOWN:]}"
