"""Registrations that were refused, and why. Plugins retry silently, so people find out here.

A refusal is forgotten when a plugin of that type and name registers, when its socket is removed, or when there are too
many newer ones.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from devlet.kit.clock import Clock

__all__ = ["Refusal", "Refusals"]

KEPT = 64
MAX_TEXT = 1_000  # characters of a name or a message


class Refusal(Struct, frozen=True):
    """`type` is the plugin's type as in the registration API. `name` is empty if the request did not contain one."""

    type: str
    name: str
    socket: Path | None
    message: str
    since: datetime


class Refusals:
    """`report` is called with each refusal that is new or has a new message; it must not block."""

    def __init__(self, clock: Clock, report: Callable[[Refusal], None] = lambda refusal: None) -> None:
        self._clock = clock
        self._report = report
        self._found: dict[tuple[str, str], Refusal] = {}

    def records(self) -> Sequence[Refusal]:
        return tuple(self._found.values())

    def add(self, type: str, name: str, socket: Path | None, message: str) -> bool:
        """Note a refusal. Return True if it is new, or for a new reason."""
        key, before = _key(type, name, socket), self._found.get(_key(type, name, socket))
        message = message[:MAX_TEXT]
        if before is not None and before.message == message:
            return False
        refusal = Refusal(type, name[:MAX_TEXT], socket, message, self._clock.now())
        self._found.pop(key, None)
        self._found[key] = refusal
        while len(self._found) > KEPT:
            del self._found[next(iter(self._found))]
        self._report(refusal)
        return True

    def remove(self, type: str, name: str) -> None:
        """Forget the refusal of a plugin that has registered."""
        self._found.pop(_key(type, name, None), None)

    def remove_socket(self, socket: Path) -> None:
        """Forget the refusals of a socket that is gone."""
        self._found = {key: refusal for key, refusal in self._found.items() if refusal.socket != socket}


def _key(type: str, name: str, socket: Path | None) -> tuple[str, str]:
    return type, name[:MAX_TEXT] or str(socket or "")
