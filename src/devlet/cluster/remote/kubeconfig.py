"""Kubeconfig files: which server, as whom, in which namespace.

Several files count as one in which the first that names a thing wins, entry by entry. Paths in a file are relative to
that file, so they are resolved before files are merged.
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from devlet.cluster.remote.connection import (
    Connection,
    Credentials,
    ExecPlugin,
    Impersonation,
    KeyPair,
    Source,
)
from devlet.cluster.remote.kubeconfig_file import Cluster, Context, Exec, File, User, parse, read
from devlet.errors import InvalidInput

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"

T = TypeVar("T")


class Kubeconfig:
    """One or several files, merged. Only the entries of the chosen context are validated."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.current_context = ""
        self._clusters: dict[str, tuple[Cluster, Path]] = {}
        self._users: dict[str, tuple[User, Path]] = {}
        self._contexts: dict[str, Context] = {}

    @property
    def contexts(self) -> list[str]:
        return sorted(self._contexts)

    def add(self, file: File, path: Path) -> None:
        folder = path.absolute().parent
        self.current_context = self.current_context or file.current_context
        clusters = _by_name([(c.name, (c.cluster, folder)) for c in file.clusters], "cluster", path)
        users = _by_name([(u.name, (u.user, folder)) for u in file.users], "user", path)
        contexts = _by_name([(c.name, c.context) for c in file.contexts], "context", path)
        self._clusters = clusters | self._clusters
        self._users = users | self._users
        self._contexts = contexts | self._contexts

    def connection(self, context: str = "") -> Connection:
        """Return the connection of the given context, or of the current one."""
        name = context or self.current_context
        if not self._contexts:
            raise InvalidInput(f"{self._origin}: it has no contexts, so it names no cluster; is it the right file?")
        if not name:
            raise InvalidInput(f"{self._origin}: no current context; name one of {_listed(self.contexts)}")
        if name not in self._contexts:
            raise InvalidInput(f"{self._origin}: no context {name!r}; there is {_listed(self.contexts)}")
        chosen = self._contexts[name]
        where = f"{self._origin}: context {name!r}"
        if chosen.cluster not in self._clusters:
            raise InvalidInput(f"{where}: no cluster {chosen.cluster!r}")
        if chosen.user and chosen.user not in self._users:
            raise InvalidInput(f"{where}: no user {chosen.user!r}")
        user, user_folder = self._users.get(chosen.user, (User(), Path()))
        cluster, folder = self._clusters[chosen.cluster]
        of_user, of_cluster = f"user {chosen.user!r}", f"cluster {chosen.cluster!r}"
        if cluster.proxy_url:
            raise InvalidInput(f"{of_cluster}: proxy-url is not supported; reach {cluster.server} without a proxy")
        ca = _content(cluster.certificate_authority, cluster.certificate_authority_data, folder, of_cluster)
        return Connection(
            cluster.server,
            ca=read(ca) if isinstance(ca, Path) else ca,
            verify=not cluster.insecure_skip_tls_verify,
            tls_server_name=cluster.tls_server_name,
            credentials=_credentials(user, user_folder, of_user, cluster, ca),
            impersonate=_impersonation(user, of_user),
            namespace=chosen.namespace or "default",
        )


def paths(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the files that kubectl would read: those of KUBECONFIG, or ~/.kube/config."""
    if listed := environment.get("KUBECONFIG", ""):
        return list(dict.fromkeys(Path(part) for part in listed.split(os.pathsep) if part))
    return [Path(environment.get("HOME", "/")) / ".kube" / "config"]


def load(files: Sequence[Path]) -> Kubeconfig:
    """Read the files. Missing files are ignored, unless all are missing."""
    config = Kubeconfig(os.pathsep.join(map(str, files)))
    found = [path for path in files if path.exists()]
    if not found:
        raise InvalidInput(f"no kubeconfig: {_listed([str(path) for path in files])} not found")
    for path in found:
        config.add(parse(read(path), path), path)
    return config


def connection(files: Sequence[Path], context: str = "") -> Connection:
    return load(files).connection(context)


def _by_name(entries: list[tuple[str, T]], what: str, path: Path) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, entry in entries:
        if name in found:
            raise InvalidInput(f"{path}: {what} {name!r} is there twice")
        found[name] = entry
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _content(file: str, data: str, folder: Path, where: str) -> Source:
    """Return data from the kubeconfig itself, or else from the file that it names."""
    if not data:
        return folder / file if file else b""
    try:
        return base64.b64decode(data.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{where}: the data of a certificate or key is not base64") from None


def _credentials(user: User, folder: Path, where: str, cluster: Cluster, ca: Source) -> Credentials:
    if user.auth_provider is not None:
        raise InvalidInput(f"{where}: auth-provider is not supported; use exec")
    if user.username:
        raise InvalidInput(f"{where}: username and password are not supported; use a token or a certificate")
    certificate = _content(user.client_certificate, user.client_certificate_data, folder, where)
    key = _content(user.client_key, user.client_key_data, folder, where)
    if bool(certificate) != bool(key):
        raise InvalidInput(f"{where}: a client certificate needs its key, and the key its certificate")
    return Credentials(
        KeyPair(certificate, key) if certificate and key else None,
        user.token,
        folder / user.token_file if user.token_file else None,
        _exec_plugin(user.exec, folder, where, cluster, ca) if user.exec else None,
    )


def _exec_plugin(plugin: Exec, folder: Path, where: str, cluster: Cluster, ca: Source) -> ExecPlugin:
    if not plugin.command:
        raise InvalidInput(f"{where}: exec has no command")
    if plugin.api_version not in EXEC_VERSIONS:
        raise InvalidInput(f"{where}: exec apiVersion {plugin.api_version!r}, expected {' or '.join(EXEC_VERSIONS)}")
    if plugin.interactive_mode == "Always":
        raise InvalidInput(f"{where}: exec plugin {plugin.command} wants a terminal, there is none here")
    return ExecPlugin(
        str(folder / plugin.command) if "/" in plugin.command else plugin.command,
        plugin.api_version,
        tuple(plugin.args),
        {variable.name: variable.value for variable in plugin.env},
        plugin.install_hint,
        _cluster_info(cluster, ca) if plugin.provide_cluster_info else None,
    )


def _cluster_info(cluster: Cluster, ca: Source) -> dict[str, object]:
    authority = read(ca) if isinstance(ca, Path) else ca
    config = next((e.extension for e in cluster.extensions if e.name == _EXEC_EXTENSION), None)
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "config": config,
    }
    return {key: value for key, value in info.items() if value}


def _impersonation(user: User, where: str) -> Impersonation:
    extra = {key: tuple(values) for key, values in user.as_user_extra.items()}
    if (user.as_uid or user.as_groups or extra) and not user.as_:
        raise InvalidInput(f"{where}: as-uid, as-groups and as-user-extra need as")
    return Impersonation(user.as_, user.as_uid, tuple(user.as_groups), extra)
