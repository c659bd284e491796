"""The state of running programs and nodes, for the report of a failed wait.

A running part attaches a function that describes it. When a wait fails, `collect` calls the functions of all attached
parts, because by the time pytest reports the failure the parts have been stopped. A part whose block ends with any
other exception (a subprocess or a socket that timed out, pytest's own limit) is described on the way out;
`take_failures` returns these descriptions.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

__all__ = ["attach", "collect", "take_failures"]

MARK = "\n--- "  # before the name of each part
SHOWN = 6_000  # characters per part
KEPT = 8  # descriptions of parts whose block ended with an exception; a test that expects exceptions makes many

_numbers = count()
_parts: dict[int, tuple[str, Callable[[], str]]] = {}
_failures: deque[str] = deque(maxlen=KEPT)


@contextmanager
def attach(name: str, describe: Callable[[], str]) -> Iterator[None]:
    """Have failed waits show what `describe` returns, for as long as the block runs."""
    number = next(_numbers)
    _parts[number] = (name, describe)
    try:
        yield
    except BaseException:  # cancellation included: it is how the failure of a task reaches its neighbours
        _failures.append(_paragraph(name, describe))
        raise
    finally:
        del _parts[number]


def collect() -> str:
    """Return a paragraph per attached part, or an empty string. A part that cannot be described gets its error."""
    return "".join(_paragraph(name, describe) for name, describe in list(_parts.values()))


def take_failures() -> str:
    """Return a paragraph per part whose block ended with an exception since the last call."""
    text = "".join(_failures)
    _failures.clear()
    return text


def _paragraph(name: str, describe: Callable[[], str]) -> str:
    return f"{MARK}{name}\n{_described(describe)}"


def _described(describe: Callable[[], str]) -> str:
    try:
        text = describe()
    except Exception as e:  # the wait that failed is what matters, not this
        text = f"(cannot be described: {e!r})"
    return text if len(text) <= SHOWN else f"(…)\n{text[-SHOWN:]}"
