"""Who is asking: the user behind a client certificate, a bearer token or a unix socket.

Wrong credentials are refused. A request without credentials is `system:anonymous`, who may do next to nothing. A valid
certificate takes precedence over a token, as in Kubernetes.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from devlet.auth import service_accounts
from devlet.auth.jws import InvalidToken
from devlet.auth.tokens import Binding, Claims, Reference, StaticTokens, TokenIssuer
from devlet.auth.users import ADMINISTRATOR, ANONYMOUS, AUTHENTICATED, User
from devlet.errors import DevletError, Forbidden

__all__ = ["Authenticator", "PeerCertificate", "UidLookup", "Unauthorized", "certificate_user", "peer_user"]

# The plural of a resource of the core group, namespace, name → the uid of the object, if it exists.
UidLookup = Callable[[str, str, str], str | None]

# What `ssl.SSLSocket.getpeercert()` returns: only a verified certificate has content.
PeerCertificate = Mapping[str, Any]


class Unauthorized(DevletError):
    """The credentials are wrong (401). The text does not say why, so that an attacker learns nothing from it."""

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
        """Return the audience of tokens that name no other one: this API."""
        return self._issuer.issuer

    def authenticate(self, token: str, certificate: PeerCertificate | None = None) -> User:
        """Return the user of a TLS request, before impersonation. `token` is empty if the request has none."""
        if certificate and (user := certificate_user(certificate)):
            return user
        return self.token_user(token)[0] if token else ANONYMOUS

    def token_user(self, token: str, audiences: tuple[str, ...] = ()) -> tuple[User, tuple[str, ...]]:
        """Return the user of the token, and those of `audiences` (by default this API) that the token is valid for."""
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
        """Return whether the account, and the object that the token is bound to, still exist with the same uid."""
        bound: list[tuple[str, str, Reference | None]] = [
            ("serviceaccounts", binding.namespace, binding.serviceaccount),
            ("pods", binding.namespace, binding.pod),
            ("secrets", binding.namespace, binding.secret),
        ]
        # In a pod's token the node is for information only; a node's token may name the node without its uid.
        if binding.pod is None and binding.node is not None and binding.node.uid:
            bound.append(("nodes", "", binding.node))
        return all(
            reference is None
            or (bool(reference.uid) and self._uid_of(plural, namespace, reference.name) == reference.uid)
            for plural, namespace, reference in bound
        )


def certificate_user(certificate: PeerCertificate) -> User | None:
    """Return the user of a certificate: CN is the name, each O a group. Return None if there is no name."""
    fields = [pair for relative_name in certificate.get("subject", ()) for pair in relative_name]
    names = [value for key, value in fields if key == "commonName"]
    groups = [value for key, value in fields if key == "organizationName"]
    if not names or not names[-1]:
        return None
    return User(names[-1], groups=tuple(dict.fromkeys((*groups, AUTHENTICATED))))


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


def peer_user(uid: int, own_uid: int) -> User:
    """Return the user of a connection to the node's own socket, on which the kernel reports `uid`. The user who runs
    devlet, and root, are administrators; all others are refused."""
    if uid not in (0, own_uid):
        raise Forbidden(f"forbidden: user {uid} may not use this socket, it is for user {own_uid} and root")
    return ADMINISTRATOR
