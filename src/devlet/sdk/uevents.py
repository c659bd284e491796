"""Receive the kernel's uevents, over netlink, about devices that were added or removed.

A sandbox can forbid netlink, and some containers receive no events. So an event only means that something changed, and
comes sooner than a change of a directory. It is never the only source of information.
"""

import errno
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import anyio
from msgspec import Struct

from devlet.errors import Unavailable

__all__ = ["Uevent", "UeventSocket", "parse"]

_PROTOCOL: Final = 15  # NETLINK_KOBJECT_UEVENT of linux/netlink.h
_KERNEL_GROUP: Final = 1  # group 2 has the events of udev
_BUFFER = 1 << 20  # bytes; a dock with a dozen devices would fill the default
_MESSAGE = 8 << 10  # the kernel's own limit is 2 KiB of properties, and the path


class Uevent(Struct, frozen=True):
    """`action` is add, remove, change, move, bind, unbind, online or offline. `path` is below /sys."""

    action: str
    path: str
    subsystem: str = ""
    properties: Mapping[str, str] = {}


def parse(blob: bytes) -> Uevent | None:
    """Parse a message. Return None if it is not one of the kernel. Bytes that are not UTF-8 are kept as in file
    names."""
    head, _, rest = blob.partition(b"\0")
    action, at, path = head.decode(errors="surrogateescape").partition("@")
    if not at or not action.isascii() or not action.isalpha() or not path.startswith("/"):
        return None
    pairs = (field.partition("=") for field in rest.decode(errors="surrogateescape").split("\0"))
    properties = {key: value for key, equals, value in pairs if equals and key}
    return Uevent(action, path, properties.get("SUBSYSTEM", ""), properties)


class UeventSocket:
    """Receives events from its creation on, for one task, inside `with`. Raise Unavailable if that is not allowed."""

    def __init__(self) -> None:
        try:
            flags = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            self._socket = socket.socket(socket.AF_NETLINK, flags, _PROTOCOL)
        except OSError as e:
            raise Unavailable(f"uevents cannot be received: {e.strerror or e}") from e
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            self._socket.bind((0, _KERNEL_GROUP))
        except OSError as e:
            self._socket.close()
            raise Unavailable(f"uevents cannot be received: {e.strerror or e}") from e

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    async def receive(self) -> Uevent | None:
        """Return the next event; None if events were lost. Cancelling a call loses no event."""
        while True:
            await anyio.wait_readable(self._socket)
            try:
                blob, sender = self._socket.recvfrom(_MESSAGE)
            except BlockingIOError:
                continue
            except OSError as e:
                if e.errno != errno.ENOBUFS:
                    raise
                return None
            if sender[0] == 0 and (event := parse(blob)) is not None:  # from the kernel, and not from a process
                return event
