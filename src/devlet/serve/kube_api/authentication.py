"""Who is asking: by client certificate, bearer token, or as the owner of the socket they came through.

Wrong credentials are refused; no credentials make `system:anonymous`, who may do next to nothing. A valid certificate
counts before a token, as in Kubernetes.
"""

import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

from devlet.errors import DevletError, Forbidden
from devlet.serve.kube_api import service_accounts
from devlet.serve.kube_api.credentials import ADMINISTRATOR
from devlet.serve.kube_api.requests import ANONYMOUS, AUTHENTICATED, User
from devlet.serve.kube_api.tokens import Binding, Claims, InvalidToken, Reference, StaticTokens, TokenIssuer

__all__ = ["Authenticator", "PeerCertificate", "UidLookup", "Unauthorized", "peer_uid", "peer_user"]

# The plural of a resource of the core group, namespace, name → the uid of the object, if there is one.
UidLookup = Callable[[str, str, str], str | None]

# What `ssl.SSLSocket.getpeercert()` gives: only of a certificate that was verified.
PeerCertificate = Mapping[str, Any]

_PEER_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class Unauthorized(DevletError):
    """The credentials are wrong (401). Says no more, so that nobody learns why."""

    def __init__(self) -> None:
        super().__init__("Unauthorized")


class Authenticator:
    def __init__(
        self, static: StaticTokens, issuer: TokenIssuer, uid_of: UidLookup, now: Callable[[], datetime]
    ) -> None:
        self._static = static
        self._issuer = issuer
        self._uid_of = uid_of
        self._now = now

    @property
    def audience(self) -> str:
        """For whom tokens are that say nothing else: this API."""
        return self._issuer.issuer

    def authenticate(self, headers: Iterable[tuple[str, str]], certificate: PeerCertificate | None = None) -> User:
        """The user of a request that came over TLS, before impersonation."""
        if certificate and (user := certificate_user(certificate)):
            return user
        token = _bearer_token(headers)
        return self.token_user(token)[0] if token else ANONYMOUS

    def token_user(self, token: str, audiences: tuple[str, ...] = ()) -> tuple[User, tuple[str, ...]]:
        """Whose token it is, and for which of `audiences` (this API, unless said) it is good."""
        wanted = audiences or (self.audience,)
        if (user := self._static.find(token)) is not None:
            if self.audience not in wanted:
                raise Unauthorized
            return user, (self.audience,)
        try:
            claims = self._issuer.verify(token, self._now(), wanted)
        except InvalidToken as e:
            raise Unauthorized from e
        if not self._is_alive(claims.kubernetes):
            raise Unauthorized
        return _account_user(claims), tuple(one for one in wanted if one in claims.aud)

    def _is_alive(self, binding: Binding) -> bool:
        """Whether the account and what the token is bound to are still the ones it was made for."""
        bound: list[tuple[str, str, Reference | None]] = [
            ("serviceaccounts", binding.namespace, binding.serviceaccount),
            ("pods", binding.namespace, binding.pod),
            ("secrets", binding.namespace, binding.secret),
        ]
        # A pod's token names the node for information only; a node's token may name it without saying which.
        if binding.pod is None and binding.node is not None and binding.node.uid:
            bound.append(("nodes", "", binding.node))
        return all(
            reference is None
            or (bool(reference.uid) and self._uid_of(plural, namespace, reference.name) == reference.uid)
            for plural, namespace, reference in bound
        )


def certificate_user(certificate: PeerCertificate) -> User | None:
    """CN is the name, each O a group. None if there is no name."""
    fields = [pair for relative_name in certificate.get("subject", ()) for pair in relative_name]
    names = [value for key, value in fields if key == "commonName"]
    groups = [value for key, value in fields if key == "organizationName"]
    if not names or not names[-1]:
        return None
    return User(names[-1], groups=tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def _bearer_token(headers: Iterable[tuple[str, str]]) -> str:
    for name, value in headers:
        if name.lower() == "authorization":
            scheme, _, token = value.strip().partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
    return ""


def _account_user(claims: Claims) -> User:
    binding = claims.kubernetes
    extra = {service_accounts.CREDENTIAL_ID: (f"JTI={claims.jti}",)}
    if binding.pod:
        extra[service_accounts.POD_NAME] = (binding.pod.name,)
        extra[service_accounts.POD_UID] = (binding.pod.uid,)
    if binding.node:
        extra[service_accounts.NODE_NAME] = (binding.node.name,)
        if binding.node.uid:
            extra[service_accounts.NODE_UID] = (binding.node.uid,)
    groups = service_accounts.groups(binding.namespace)
    return User(claims.sub, binding.serviceaccount.uid, groups, extra)


class _UnixSocket(Protocol):
    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


def peer_uid(connection: _UnixSocket) -> int:
    """The user at the other end of a unix socket, as the kernel knows it."""
    size = _PEER_CREDENTIALS.size
    uid: int = _PEER_CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1]
    return uid


def peer_user(uid: int, own_uid: int) -> User:
    """Who may use the node's own socket: the user who runs devlet, and root, as administrators."""
    if uid not in (0, own_uid):
        raise Forbidden(f"forbidden: user {uid} may not use this socket, it is for user {own_uid} and root")
    return ADMINISTRATOR
