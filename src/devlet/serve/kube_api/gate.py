"""The gate in front of the API: who a request comes from, and whether they may."""

import os
import socket

from aiohttp import web

from devlet.cluster.store.store import Store
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, PODS, RBAC, RESOURCE_SLICES, SECRETS, SERVICE_ACCOUNTS
from devlet.objects.statuses import failure
from devlet.serve.kube_api.admission import Admission
from devlet.serve.kube_api.answers import Rejected
from devlet.serve.kube_api.authentication import Authenticator, UidLookup, Unauthorized, peer_uid, peer_user
from devlet.serve.kube_api.authorization import Authorizer
from devlet.serve.kube_api.impersonation import impersonate
from devlet.serve.kube_api.rbac import Policy
from devlet.serve.kube_api.requests import Attributes, User

_WITH_UID = {resource.plural: resource for resource in (NODES, PODS, SECRETS, SERVICE_ACCOUNTS)}


class Facts:
    """What the rules about users need to know about objects, read from the store's memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._policy = Policy()
        self._policy_of: tuple[int, ...] = ()

    def pods_on(self, node: str) -> list[Document]:
        records = self._store.table(PODS).records.values()
        return [r.document() for r in records if (r.selectable.get("spec") or {}).get("nodeName") == node]

    def slice_node(self, name: str) -> str | None:
        record = self._store.table(RESOURCE_SLICES).get(("", name))
        return (record.selectable.get("spec") or {}).get("nodeName") if record else None

    def uid_of(self, plural: str, namespace: str, name: str) -> str | None:
        record = self._store.table(_WITH_UID[plural]).get((namespace, name))
        return record.metadata.uid if record else None

    def policy(self) -> Policy:
        """Made anew when one of its objects has changed."""
        tables = [self._store.table(resource) for resource in RBAC]
        versions = tuple(table.version for table in tables)
        if versions != self._policy_of:
            self._policy = Policy(record.document() for table in tables for record in table.records.values())
            self._policy_of = versions
        return self._policy


class Gate:
    def __init__(self, authenticator: Authenticator, authorizer: Authorizer, uid_of: UidLookup) -> None:
        self.authenticator = authenticator
        self.authorizer = authorizer
        self.admission = Admission(authorizer, uid_of)

    def authenticate(self, request: web.BaseRequest) -> User:
        """Impersonation included. 401 if credentials are wrong."""
        try:
            user = self._real_user(request)
        except Unauthorized:
            raise Rejected(failure(401, "Unauthorized", "Unauthorized")) from None
        return impersonate(request.headers.items(), lambda wanted: self.require(user, wanted)) or user

    def _real_user(self, request: web.BaseRequest) -> User:
        transport = request.transport
        if transport is None:
            raise Unauthorized
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family == socket.AF_UNIX:
            return peer_user(peer_uid(connection), os.getuid())
        return self.authenticator.authenticate(request.headers.items(), transport.get_extra_info("peercert"))

    def require(self, user: User, wanted: Attributes) -> None:
        """Forbidden, in Kubernetes' words, unless the user may."""
        self.authorizer.require(user, wanted)
