"""The credentials of a root, which are the same after every restart.

    DIR/pki/                     authority, server certificate, signing key of tokens, the administrator's token
    DIR/kubeconfig               the administrator
    DIR/drivers/NAME.kubeconfig  a driver on this node; NAME@NODE.kubeconfig, the driver on another
    DIR/in-cluster/              token, ca.crt and namespace, as a program in a pod finds them

Who holds `DIR/pki` can make any credential. Everything here blocks on the disk: call it in a thread.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from devlet.errors import InvalidInput, StateCorrupt
from devlet.kit import atomic_file
from devlet.objects import names as name_rules
from devlet.objects.documents import Document
from devlet.objects.subdocuments import mapping, mappings
from devlet.serve.kube_api import kubeconfigs
from devlet.serve.kube_api.certificates import Pki, key_pem, new_key, open_pki, read_key
from devlet.serve.kube_api.requests import AUTHENTICATED, MASTERS, User
from devlet.serve.kube_api.tokens import Binding, InvalidToken, Reference, StaticTokens, TokenIssuer

ADMINISTRATOR = User("admin", groups=(MASTERS, AUTHENTICATED))
NODES_GROUP = "system:nodes"
NODE_PREFIX = "system:node:"

LIFETIME = timedelta(days=3650)  # of what lies in files that nobody renews
RENEW_BEFORE = timedelta(days=60)

_FILE_NAME_MAX = 240  # a file is written beside it first, with a longer name

_token = re.compile(r"[A-Za-z0-9_-]{32,128}").fullmatch


@dataclass(frozen=True, slots=True)
class InCluster:
    """What a program needs that looks for `/var/run/secrets/kubernetes.io/serviceaccount`: mount `directory` there."""

    directory: Path
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Credentials:
    root: Path
    pki: Pki
    tokens: TokenIssuer
    admin_token: str = field(repr=False)

    @property
    def authority_pem(self) -> bytes:
        return self.pki.authority.certificate_pem

    def static_tokens(self) -> StaticTokens:
        return StaticTokens({self.admin_token: ADMINISTRATOR})

    def write_kubeconfig(self, server: str) -> Path:
        """The administrator's, for the API at `server` (https://…)."""
        path = self.root / "kubeconfig"
        kubeconfigs.write(path, self._config(server, ADMINISTRATOR.name, kubeconfigs.token_user(self.admin_token)))
        return path

    def write_driver_kubeconfig(
        self, driver: str, node: str, account: Document, server: str, now: datetime, *, elsewhere: bool = False
    ) -> Path:
        """For a driver on a node: this root's, or else one that is elsewhere. `account` is its service account as it is
        stored, with the name that `service_accounts.driver_account` gives."""
        _check_name("driver", driver, name_rules.driver_name(driver))
        path = _made(self.root / "drivers") / _driver_file(driver, node if elsewhere else "")
        name = account["metadata"]["name"]
        old = _token_in(kubeconfigs.read(path), name)
        token = self._account_token(account, node, old, now)
        kubeconfigs.write(path, self._config(server, name, kubeconfigs.token_user(token)))
        return path

    def node_kubeconfig(self, node: str, server: str, now: datetime) -> str:
        """The text of a kubeconfig with which a node joins. Another one each time; all stay valid."""
        _check_name("node", node, name_rules.dns_subdomain(node))
        user = NODE_PREFIX + node
        pair = self.pki.issue_client(user, (NODES_GROUP,), now, LIFETIME)
        return kubeconfigs.text(self._config(server, user, kubeconfigs.certificate_user(pair)))

    def write_in_cluster(
        self, account: Document, node: str, server: str, now: datetime, directory: Path | None = None
    ) -> InCluster:
        """Files and environment of a program that runs as `account` on `node`."""
        directory = _made(directory or self.root / "in-cluster")
        token = self._account_token(account, node, _read_text(directory / "token"), now)
        contents = {
            "ca.crt": self.authority_pem,
            "namespace": account["metadata"]["namespace"].encode(),
            "token": token.encode(),
        }
        for name, content in contents.items():
            if _read_text(directory / name).encode() != content:
                atomic_file.write(directory / name, content)
        url = urlsplit(server)
        environment = {"KUBERNETES_SERVICE_HOST": url.hostname or "", "KUBERNETES_SERVICE_PORT": str(url.port or 443)}
        return InCluster(directory, environment)

    def _config(self, server: str, name: str, user: Document) -> Document:
        if not server.startswith("https://"):
            raise InvalidInput(f"server {server!r}: an https:// URL is expected, clients send no token elsewhere")
        return kubeconfigs.document(server, self.authority_pem, name, user)

    def _account_token(self, account: Document, node: str, old: str, now: datetime) -> str:
        """The old token if it is still good, else a new one."""
        metadata = account["metadata"]
        itself = Reference(metadata["name"], metadata["uid"])
        # Only the node's name: the token has to survive that the Node object is deleted and comes back.
        binding = Binding(metadata["namespace"], itself, node=Reference(node) if node else None)
        try:
            if old and self.tokens.verify(old, now + RENEW_BEFORE).kubernetes == binding:
                return old
        except InvalidToken:
            pass
        return self.tokens.issue(binding, now, LIFETIME)


def open_credentials(root: Path, names: Sequence[str], now: datetime) -> Credentials:
    """Those of the root, made at the first start. `names` is what the server's certificate must hold."""
    pki = open_pki(root / "pki", names, now)
    key_file, token_file = pki.directory / "service-accounts.key", pki.directory / "admin.token"
    for file in (key_file, token_file, root / "kubeconfig"):
        atomic_file.remove_leftovers(file)
    if not key_file.exists():
        atomic_file.write(key_file, key_pem(new_key()))
    if not token_file.exists():
        atomic_file.write(token_file, secrets.token_urlsafe(32).encode())
    return Credentials(root, pki, TokenIssuer(read_key(key_file)), _read_admin_token(token_file))


def _read_admin_token(path: Path) -> str:
    text = _read_text(path).strip()
    if not _token(text):
        raise StateCorrupt(f"{path} holds no token; move it away to get a new one")
    if (mode := path.stat().st_mode & 0o777) & 0o077:
        raise StateCorrupt(f"{path} may be used by others (mode {mode:04o}); run: chmod 600 {path}")
    return text


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes()[: 64 * 1024].decode()
    except (OSError, UnicodeDecodeError):
        return ""


def _made(directory: Path) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _driver_file(driver: str, node: str) -> str:
    name = f"{driver}@{node}.kubeconfig" if node else f"{driver}.kubeconfig"
    if len(name) > _FILE_NAME_MAX:
        raise InvalidInput(f"driver {driver!r} on node {node!r}: {name} is too long for the name of a file")
    return name


def _token_in(config: Document, name: str) -> str:
    for entry in mappings(config, "users"):
        token = (mapping(entry, "user") or {}).get("token")
        if entry.get("name") == name and isinstance(token, str):
            return token
    return ""


def _check_name(what: str, name: str, errors: Sequence[str]) -> None:
    if errors:
        raise InvalidInput(f"{what} {name!r}: {errors[0]}")
