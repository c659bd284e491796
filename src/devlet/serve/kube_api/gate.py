"""The gate in front of the API: it reads the credentials of a request, and has `devlet.auth` decide about them."""

import os
import socket
import struct
from collections.abc import Iterable
from typing import Protocol

from aiohttp import web

from devlet.auth.admission import Admission
from devlet.auth.authentication import Authenticator, UidLookup, Unauthorized, peer_user
from devlet.auth.authorization import Authorizer
from devlet.auth.rules import Attributes
from devlet.auth.users import User
from devlet.objects.statuses import failure
from devlet.serve.kube_api.answers import Rejected
from devlet.serve.kube_api.impersonation import impersonation

__all__ = ["Gate", "bearer_token", "peer_uid"]

_PEER_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class Gate:
    def __init__(self, authenticator: Authenticator, authorizer: Authorizer, uid_of: UidLookup) -> None:
        self.authenticator = authenticator
        self.authorizer = authorizer
        self.admission = Admission(authorizer, uid_of)

    def authenticate(self, request: web.BaseRequest) -> User:
        """Return the user of the request, after impersonation. Wrong credentials are answered with 401."""
        try:
            user = self._real_user(request)
        except Unauthorized:
            raise Rejected(failure(401, "Unauthorized", "Unauthorized")) from None
        wanted = impersonation(request.headers.items())
        if wanted is None:
            return user
        for permission in wanted.permissions():
            self.require(user, permission)
        return wanted.user()

    def _real_user(self, request: web.BaseRequest) -> User:
        transport = request.transport
        if transport is None:
            raise Unauthorized
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family == socket.AF_UNIX:
            return peer_user(peer_uid(connection), os.getuid())
        token = bearer_token(request.headers.items())
        return self.authenticator.authenticate(token, transport.get_extra_info("peercert"))

    def require(self, user: User, wanted: Attributes) -> None:
        """Raise Forbidden, in Kubernetes' words, unless the user may do this."""
        self.authorizer.require(user, wanted)


def bearer_token(headers: Iterable[tuple[str, str]]) -> str:
    """Return the token of the Authorization header; empty if there is none."""
    for name, value in headers:
        if name.lower() == "authorization":
            scheme, _, token = value.strip().partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
    return ""


class _UnixSocket(Protocol):
    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


def peer_uid(connection: _UnixSocket) -> int:
    """Return the user id of the process at the other end of a unix socket, as the kernel reports it."""
    size = _PEER_CREDENTIALS.size
    uid: int = _PEER_CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1]
    return uid
