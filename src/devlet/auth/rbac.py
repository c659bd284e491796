"""Role-based access: Role, ClusterRole and their bindings, evaluated as Kubernetes does.

Rules only ever add permissions. Documents are taken as they are stored; malformed parts grant nothing. Aggregated
cluster roles are not computed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from devlet.auth import service_accounts
from devlet.auth.rules import ALL, EVERYTHING, READ, Attributes, Rule, rule_of
from devlet.auth.users import User
from devlet.objects.documents import Document
from devlet.objects.subdocuments import mapping, mappings

__all__ = ["GROUP", "Grant", "Policy"]

GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Grant:
    """The rules that one binding gives to one subject. An empty `namespace` means that they hold everywhere."""

    rules: tuple[Rule, ...]
    namespace: str
    reason: str


_WRITE = ("create", "delete", "deletecollection", "patch", "update")

_VIEWED = (
    Rule(READ, ("",), (ALL,), but=("secrets", "nodes", "persistentvolumes")),
    Rule(READ, ("apps", "policy", "events.k8s.io"), (ALL,)),
    Rule(READ, ("resource.k8s.io",), ("resourceclaims", "resourceclaims/status", "resourceclaimtemplates")),
)
_EDITED = (
    *_VIEWED,
    Rule(
        (*READ, *_WRITE),
        ("",),
        (
            *("configmaps", "events", "persistentvolumeclaims", "pods", "pods/eviction", "replicationcontrollers"),
            *("secrets", "serviceaccounts", "serviceaccounts/token", "services"),
        ),
    ),
    Rule(_WRITE, ("apps", "policy", "events.k8s.io"), (ALL,)),
    Rule((*READ, *_WRITE), ("coordination.k8s.io",), ("leases",)),
    Rule(_WRITE, ("resource.k8s.io",), ("resourceclaims", "resourceclaimtemplates")),
)

# Cluster roles that people bind without creating them. A stored role of the same name replaces the built-in one.
BUILT_IN: dict[str, tuple[Rule, ...]] = {
    "cluster-admin": EVERYTHING,
    "admin": (*_EDITED, Rule(("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews",))),
    "edit": _EDITED,
    "view": _VIEWED,
}


class Policy:
    """The grants of a set of documents, found by subject. Immutable: create a new one when a document changes."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        by_kind: dict[str, list[Document]] = {}
        for document in documents:
            by_kind.setdefault(str(document.get("kind")), []).append(document)
        self._roles: dict[tuple[str, str], tuple[Rule, ...]] = {("", name): rules for name, rules in BUILT_IN.items()}
        for role in by_kind.get("ClusterRole", []):
            self._roles["", _name(role)] = _rules(role)
        for role in by_kind.get("Role", []):
            self._roles[_namespace(role), _name(role)] = _rules(role)
        self._grants: dict[tuple[str, str], list[Grant]] = {}
        for kind in ("ClusterRoleBinding", "RoleBinding"):
            for binding in by_kind.get(kind, []):
                self._add(kind, binding)

    def grants(self, user: User, namespace: str = "") -> Iterator[Grant]:
        """Yield the user's grants that hold everywhere, and those of the namespace."""
        for subject in (("User", user.name), *(("Group", group) for group in user.groups)):
            for grant in self._grants.get(subject, ()):
                if not grant.namespace or grant.namespace == namespace:
                    yield grant

    def allows(self, user: User, wanted: Attributes) -> str | None:
        """Return the reason why the request is allowed, or None if no grant allows it."""
        for grant in self.grants(user, wanted.namespace):
            if any(rule.allows(wanted) for rule in grant.rules):
                return grant.reason
        return None

    def _add(self, kind: str, binding: Document) -> None:
        namespace = _namespace(binding) if kind == "RoleBinding" else ""
        reference = mapping(binding, "roleRef") or {}
        role_kind, role = reference.get("kind"), str(reference.get("name"))
        if role_kind not in ("Role", "ClusterRole") or (role_kind == "Role" and not namespace):
            return
        rules = self._roles.get((namespace if role_kind == "Role" else "", role), ())
        if namespace:  # paths belong to no namespace
            rules = tuple(rule for rule in rules if not rule.urls)
        shown = f"{_name(binding)}/{namespace}" if namespace else _name(binding)
        for subject in mappings(binding, "subjects"):
            for subject_kind, name in _subjects(subject, namespace):
                reason = f'RBAC: allowed by {kind} "{shown}" of {role_kind} "{role}" to {subject_kind} "{name}"'
                self._grants.setdefault((subject_kind, name), []).append(Grant(rules, namespace, reason))


def _subjects(subject: Document, namespace: str) -> Iterator[tuple[str, str]]:
    kind, name = subject.get("kind"), subject.get("name")
    if not isinstance(name, str) or not name:
        return
    if kind in ("User", "Group"):
        yield kind, name
    elif kind == "ServiceAccount":
        where = subject.get("namespace") or namespace
        if isinstance(where, str) and where:
            yield "User", service_accounts.username(where, name)


def _rules(role: Document) -> tuple[Rule, ...]:
    return tuple(rule_of(rule) for rule in mappings(role, "rules"))


def _name(document: Document) -> str:
    return str((mapping(document, "metadata") or {}).get("name", ""))


def _namespace(document: Document) -> str:
    return str((mapping(document, "metadata") or {}).get("namespace", ""))
