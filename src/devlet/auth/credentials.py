"""The credentials of a root. They stay the same over restarts.

    DIR/pki/                     authority, server certificate, signing key of tokens, the administrator's token
    DIR/kubeconfig               the administrator
    DIR/drivers/NAME.kubeconfig  a driver on this node; NAME@NODE.kubeconfig is a driver on another node
    DIR/in-cluster/              token, ca.crt and namespace, as a program in a pod finds them

Anyone who can read `DIR/pki` can create any credential. Everything here blocks on the disk: call it in a thread.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from devlet.auth import kubeconfigs
from devlet.auth.certificates import Pki, key_pem, new_key, open_pki, read_key
from devlet.auth.jws import InvalidToken
from devlet.auth.tokens import Binding, Reference, StaticTokens, TokenIssuer
from devlet.auth.users import ADMINISTRATOR, NODE_PREFIX, NODES_GROUP
from devlet.errors import InvalidInput, StateCorrupt
from devlet.kit import atomic_file
from devlet.objects import names as name_rules
from devlet.objects.documents import Document
from devlet.objects.subdocuments import mapping, mappings

LIFETIME = timedelta(days=3650)  # of credentials in files that are not renewed
RENEW_BEFORE = timedelta(days=60)

_FILE_NAME_MAX = 240  # leaves space for the longer name of the temporary file that is written first

_token = re.compile(r"[A-Za-z0-9_-]{32,128}").fullmatch


@dataclass(frozen=True, slots=True)
class InCluster:
    """What a program needs that reads `/var/run/secrets/kubernetes.io/serviceaccount`: mount `directory` there, and set
    the variables of `environment`."""

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
        """Write the administrator's kubeconfig for the API at `server` (https://…)."""
        path = self.root / "kubeconfig"
        kubeconfigs.write(path, self._config(server, ADMINISTRATOR.name, kubeconfigs.token_user(self.admin_token)))
        return path

    def write_driver_kubeconfig(
        self, driver: str, node: str, account: Document, server: str, now: datetime, *, elsewhere: bool = False
    ) -> Path:
        """Write the kubeconfig of a driver on a node: on this root's own node, or `elsewhere`. `account` is the stored
        service account with the name that `service_accounts.driver_account` returns."""
        _check_name("driver", driver, name_rules.driver_name(driver))
        path = _made(self.root / "drivers") / _driver_file(driver, node if elsewhere else "")
        name = account["metadata"]["name"]
        old = _token_in(kubeconfigs.read(path), name)
        token = self._account_token(account, node, old, now)
        kubeconfigs.write(path, self._config(server, name, kubeconfigs.token_user(token)))
        return path

    def node_kubeconfig(self, node: str, server: str, now: datetime) -> str:
        """Return the text of a kubeconfig with which a node joins. Each call creates another one; all stay valid."""
        _check_name("node", node, name_rules.dns_subdomain(node))
        user = NODE_PREFIX + node
        pair = self.pki.issue_client(user, (NODES_GROUP,), now, LIFETIME)
        return kubeconfigs.text(self._config(server, user, kubeconfigs.certificate_user(pair)))

    def write_in_cluster(
        self, account: Document, node: str, server: str, now: datetime, directory: Path | None = None
    ) -> InCluster:
        """Write the files of a program that runs as `account` on `node`, and return them with its environment."""
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
            raise InvalidInput(f"server {server!r}: must be an https:// URL, because clients send tokens only over TLS")
        return kubeconfigs.document(server, self.authority_pem, name, user)

    def _account_token(self, account: Document, node: str, old: str, now: datetime) -> str:
        """Return the old token if it is still valid long enough, or else a new one."""
        metadata = account["metadata"]
        itself = Reference(metadata["name"], metadata["uid"])
        # Only the node's name: the token has to stay valid when the Node object is deleted and created again.
        binding = Binding(metadata["namespace"], itself, node=Reference(node) if node else None)
        try:
            if old and self.tokens.verify(old, now + RENEW_BEFORE).kubernetes == binding:
                return old
        except InvalidToken:
            pass
        return self.tokens.issue(binding, now, LIFETIME)


def open_credentials(root: Path, names: Sequence[str], now: datetime) -> Credentials:
    """Return the root's credentials, which the first start creates. `names` must be in the server's certificate."""
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
        raise StateCorrupt(f"{path} does not contain a token; move it away to get a new one")
    if (mode := path.stat().st_mode & 0o777) & 0o077:
        raise StateCorrupt(f"{path} is accessible to other users (mode {mode:04o}); run: chmod 600 {path}")
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
        raise InvalidInput(f"driver {driver!r} on node {node!r}: {name} is too long for a file name")
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
