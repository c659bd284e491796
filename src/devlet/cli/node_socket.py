"""The socket of a devlet on this machine: HTTP, with the kernel identifying the user."""

import socket
from pathlib import Path

from devlet.errors import Unavailable
from devlet.kit import socket_paths

NAME = "devlet.sock"
CONNECT_TIMEOUT = 10.0  # seconds


class NodeSocket:
    """The server behind a root; `start` is the command that starts a devlet there."""

    host = "localhost"
    prefix = ""
    namespace = "default"
    headers = ()
    is_node = True

    def __init__(self, root: Path, start: str = "devlet up") -> None:
        self.path = root / NAME
        self.address = str(self.path)
        self.root = root
        self._start = start

    def dial(self) -> socket.socket:
        if socket_paths.length(self.path) > socket_paths.MAX_BYTES:
            raise OSError(f"the path is longer than {socket_paths.MAX_BYTES} bytes, the limit for sockets")
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.settimeout(CONNECT_TIMEOUT)
            line.connect(self.address)
        except OSError:
            line.close()
            raise
        return line

    def check(self) -> None:
        """Raise Unavailable if no devlet listens."""
        try:
            self.dial().close()
        except OSError as e:
            raise Unavailable(self.trouble(e)) from e

    def trouble(self, error: OSError) -> str:
        match error:
            case FileNotFoundError() | ConnectionRefusedError() | NotADirectoryError():
                return f"no devlet runs on {self.root}: start one with `{self._start}`"
            case PermissionError():
                return f"{self.path}: permission denied: only the user who runs the devlet may connect"
            case TimeoutError():
                return f"{self.path}: the devlet does not answer: look at its log"
        return f"{self.path}: {error.strerror or error}"
