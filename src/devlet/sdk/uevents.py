"""What the kernel says about devices that come and go: uevents, over netlink.

Not everybody may listen: a sandbox can forbid netlink, and some containers hear nothing. So this tells that something
has happened, sooner than a directory does, and is never the only source of what there is.
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
_KERNEL_GROUP: Final = 1  # group 2 has what udev says
_BUFFER = 1 << 20  # bytes; the default is full when a dock with a dozen devices is plugged in
_MESSAGE = 8 << 10  # the kernel's own limit is 2 KiB of properties, and the path


class Uevent(Struct, frozen=True):
    """`action` is add, remove, change, move, bind, unbind, online or offline. `path` is below /sys."""

    action: str
    path: str
    subsystem: str = ""
    properties: Mapping[str, str] = {}


def parse(blob: bytes) -> Uevent | None:
    """None if it is not a message of the kernel. Text that is no UTF-8 keeps its bytes, as file names do."""
    head, _, rest = blob.partition(b"\0")
    action, at, path = head.decode(errors="surrogateescape").partition("@")
    if not at or not action.isascii() or not action.isalpha() or not path.startswith("/"):
        return None
    pairs = (field.partition("=") for field in rest.decode(errors="surrogateescape").split("\0"))
    properties = {key: value for key, equals, value in pairs if equals and key}
    return Uevent(action, path, properties.get("SUBSYSTEM", ""), properties)


class UeventSocket:
    """Hears from the moment it is made. Unavailable if that is not allowed. For one task, inside `with`."""

    def __init__(self) -> None:
        try:
            flags = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            self._socket = socket.socket(socket.AF_NETLINK, flags, _PROTOCOL)
        except OSError as e:
            raise Unavailable(f"uevents cannot be heard: {e.strerror or e}") from e
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            self._socket.bind((0, _KERNEL_GROUP))
        except OSError as e:
            self._socket.close()
            raise Unavailable(f"uevents cannot be heard: {e.strerror or e}") from e

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    async def receive(self) -> Uevent | None:
        """The next one. None if some were lost: anything may have happened. Cancelling a call loses nothing."""
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
