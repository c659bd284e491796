"""Whether a user may make a particular change, where that depends on the content of the object.

Ask after authorization and before storing, with the object as it is (`old`) and as it will be (`new`), for every object
that a request touches. A refusal is Forbidden or, for the status of a claim, InvalidObject.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from devlet.auth import node_restriction, rbac, service_accounts
from devlet.auth.authentication import UidLookup
from devlet.auth.authorization import Authorizer, forbidden
from devlet.auth.rules import Attributes
from devlet.auth.users import MASTERS, User, node_name
from devlet.errors import Cause, Forbidden, InvalidObject, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import qualified
from devlet.objects.subdocuments import mapping, mappings
from devlet.objects.validation.field_errors import forbidden as forbidden_field

__all__ = ["Admission"]

_CREATE_SLICE = "can only create ResourceSlice with the same NodeName as the requesting node"
_DELETE_SLICE = "can only delete ResourceSlice with the same NodeName as the requesting node"


class Admission:
    def __init__(self, authorizer: Authorizer, uid_of: UidLookup) -> None:
        self._authorizer = authorizer
        self._uid_of = uid_of

    def admit(self, user: User, wanted: Attributes, new: Document | None, old: Document | None) -> None:
        """Return if the change may be made. `new` is None for a deletion, `old` for a creation. For a subresource that
        is an object of its own (token), `new` is that object."""
        if MASTERS in user.groups:
            return
        if _creates(wanted, new, old):
            self._authorizer.require(user, replace(wanted, verb="create"))
        if refusal := self._refusal(user, wanted, new, old):
            name = wanted.name or _name(new or old or {})
            resource = qualified(wanted.resource, f"{wanted.group}/v" if wanted.group else "v")
            raise Forbidden(f'{resource} "{name}" is forbidden: {refusal}', resource=resource, name=name)
        if (wanted.group, wanted.resource, wanted.subresource) == ("resource.k8s.io", "resourceclaims", "status"):
            self._check_claim_status(user, wanted, new or {}, old or {})

    def _refusal(self, user: User, wanted: Attributes, new: Document | None, old: Document | None) -> str | None:
        if wanted.group == rbac.GROUP and new is not None:
            return self._escalation(user, wanted, new)
        if (wanted.group, wanted.resource) == ("resource.k8s.io", "resourceslices"):
            return _slice_refusal(user, new, old)
        if node := node_name(user):
            if _is_new_pod(wanted, new, old):
                return node_restriction.new_pod_refusal(node, self._node_uid(node), new or {})
            return node_restriction.refusal(node, wanted, new, old)
        return None

    def _node_uid(self, node: str) -> str:
        uid = self._uid_of("nodes", "", node)
        if uid is None:
            raise NotFound(f'nodes "{node}" not found', resource="nodes", name=node)
        return uid

    def _escalation(self, user: User, wanted: Attributes, new: Document) -> str | None:
        """Return why the user may not give these rights away, if so: that requires the verb `escalate` or `bind`."""
        if wanted.resource in ("roles", "clusterroles"):
            needed = replace(wanted, verb="escalate", name=wanted.name or _name(new))
        else:
            role = mapping(new, "roleRef") or {}
            plural = "clusterroles" if role.get("kind") == "ClusterRole" else "roles"
            needed = replace(wanted, verb="bind", resource=plural, name=str(role.get("name", "")))
        if self._authorizer.authorize(user, needed).allowed:
            return None
        return f'user "{user.name}" needs the verb "{needed.verb}" on {needed.resource} "{needed.name}"'

    def _check_claim_status(self, user: User, wanted: Attributes, new: Document, old: Document) -> None:
        causes = [*self._binding_causes(user, wanted, new, old), *self._device_causes(user, wanted, new, old)]
        if causes:
            raise InvalidObject("ResourceClaim.resource.k8s.io", wanted.name or _name(new), causes)

    def _binding_causes(self, user: User, wanted: Attributes, new: Document, old: Document) -> Iterator[Cause]:
        after, before = _status(new), _status(old)
        if all((after.get(key) or None) == (before.get(key) or None) for key in ("allocation", "reservedFor")):
            return
        needed = replace(wanted, subresource="binding", namespace="", name="")
        if refusal := self._missing(user, needed):
            yield forbidden_field(
                "status.allocation",
                'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding",'
                f' verb="{wanted.verb}" permission: {refusal}',
            )

    def _device_causes(self, user: User, wanted: Attributes, new: Document, old: Document) -> Iterator[Cause]:
        allocation = _status(new).get("allocation")
        if not allocation:  # device reports go away together with the allocation
            return
        verbs = [f"arbitrary-node:{wanted.verb}"]
        if service_accounts.split_username(user.name) and service_accounts.node_of(user) == _only_node(allocation):
            verbs.insert(0, f"associated-node:{wanted.verb}")
        for driver in sorted(_changed_drivers(_status(new), _status(old))):
            refusals = [
                self._missing(user, replace(wanted, verb=verb, subresource="driver", name=driver)) for verb in verbs
            ]
            if all(refusals):
                yield forbidden_field(
                    "status.devices",
                    'changing status.devices requires resource="resourceclaims/driver",'
                    f' verb="[{" ".join(verbs)}]" permission: {refusals[0]}',
                )

    def _missing(self, user: User, needed: Attributes) -> str:
        """Return why the user lacks a permission; empty if the user has it."""
        decision = self._authorizer.authorize(user, needed)
        return "" if decision.allowed else str(forbidden(user, needed, decision.reason))


def _creates(wanted: Attributes, new: Document | None, old: Document | None) -> bool:
    """Return whether an update, or a patch that is applied, creates the object: that requires the right to create."""
    return wanted.verb in ("update", "patch") and not wanted.subresource and old is None and new is not None


def _is_new_pod(wanted: Attributes, new: Document | None, old: Document | None) -> bool:
    is_pod = (wanted.group, wanted.resource, wanted.subresource) == ("", "pods", "")
    return is_pod and new is not None and old is None


def _slice_refusal(user: User, new: Document | None, old: Document | None) -> str | None:
    node = node_name(user) or service_accounts.node_of(user)
    if node is None:
        return None
    if new is not None and old is None and _spec(new).get("nodeName") != node:
        return _CREATE_SLICE
    if old is not None and _spec(old).get("nodeName") != node:
        return _DELETE_SLICE if new is None else f"no relationship found between node '{node}' and this object"
    if new is not None and _spec(new).get("nodeName") != node:
        return f"no relationship found between node '{node}' and this object"
    return _foreign_driver(user, new, old)


def _foreign_driver(user: User, new: Document | None, old: Document | None) -> str | None:
    own = service_accounts.node_driver(user)
    if own is None:
        return None
    for document in (new, old):
        driver = str(_spec(document).get("driver")) if document is not None else own
        if driver.lower() != own:
            return f'driver "{own}" may not write ResourceSlices of driver "{driver}"'
    return None


def _changed_drivers(new: Document, old: Document) -> set[str]:
    """Return the drivers with a device report that was added, changed or removed."""
    before, after = _reports(old), _reports(new)
    keys = before.keys() | after.keys()
    return {key[0] for key in keys if before.get(key) != after.get(key)}


def _reports(status: Document) -> dict[tuple[str, ...], Document]:
    fields = ("driver", "pool", "device", "shareID")
    return {tuple(str(one.get(key, "")) for key in fields): one for one in mappings(status, "devices")}


def _only_node(allocation: Any) -> str | None:
    """Return the node of an allocation that selects a single node by its name and has no other condition."""
    match allocation:
        case {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [requirement], **others}]}}:
            if others.get("matchExpressions"):
                return None
            match requirement:
                case {"key": "metadata.name", "operator": "In", "values": [str(name)]} if name:
                    return name
    return None


def _name(document: Document) -> str:
    return str((mapping(document, "metadata") or {}).get("name", ""))


def _spec(document: Document) -> Document:
    return mapping(document, "spec") or {}


def _status(document: Document) -> Document:
    return mapping(document, "status") or {}
