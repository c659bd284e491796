"""Where an API server is and how one proves who one is: the result of reading a kubeconfig, as values.

Credentials that live in files stay paths here, because those files are replaced while we run. Secrets are kept out of
every `repr`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from devlet.errors import InvalidInput

Source = bytes | Path  # the content itself, or the file that has it


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its private key, in PEM."""

    certificate: Source
    key: Source = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials. `cluster` describes the server to it; None to leave that out."""

    command: str
    api_version: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    cluster: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    key_pair: KeyPair | None = None
    token: str = field(default="", repr=False)
    token_file: Path | None = None  # its content is used instead of `token`
    exec_plugin: ExecPlugin | None = None


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Act as another user, if the credentials allow it."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of an API server and the credentials for it. `server` is a URL, possibly with a path. With `socket`,
    requests are sent over that Unix socket."""

    server: str
    socket: Path | None = None
    ca: bytes = b""  # PEM; empty: the certificate authorities of this host
    verify: bool = True
    tls_server_name: str = ""  # what the certificate is for, if not the server's host
    credentials: Credentials = Credentials()
    impersonate: Impersonation = Impersonation()
    namespace: str = "default"

    def __post_init__(self) -> None:
        if self.ca and not self.verify:
            raise InvalidInput(f"{self.server}: certificate-authority and insecure-skip-tls-verify exclude each other")
        _parse(self.server)

    @property
    def is_tls(self) -> bool:
        return self.socket is None and _parse(self.server).scheme == "https"

    @property
    def sends_credentials(self) -> bool:
        """Return the credentials to send. None are sent over plain TCP, where others could read them; kubectl does the
        same."""
        return self.is_tls or self.socket is not None

    @property
    def address(self) -> str:
        """Return the server for messages: the URL, or the path of the socket."""
        return str(self.socket) if self.socket else self.server


def at_socket(path: Path) -> Connection:
    """Return the connection to the API on a devlet's socket, where the kernel identifies the client."""
    return Connection("http://localhost", socket=path)


def _parse(server: str) -> SplitResult:
    try:
        url = urlsplit(server)
        valid = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        valid = False
    if not valid or url.username is not None or url.query or url.fragment:
        raise InvalidInput(f"server {server!r}: expected a URL such as https://192.0.2.1:6443")
    return url
