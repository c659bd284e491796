"""What a node (`system:node:NAME` of group `system:nodes`) may do: access its own objects, and what its pods use.

These rules let a node create slices and pods and change nodes. `node_restriction` and `admission`, which see the
content of an object, make sure that the object belongs to the node.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from devlet.auth.pod_references import referenced
from devlet.auth.rules import READ, Attributes, Decision, Rule
from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, NODES, PODS, RESOURCE_SLICES, SECRETS, Resource
from devlet.objects.selectors import fields as field_selectors
from devlet.objects.types.core import NODE_LEASES

__all__ = ["ALWAYS", "Relations", "decide", "selected", "slices_of"]


# The same for every node.
ALWAYS = (
    Rule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),
    Rule(READ, ("",), ("services",)),
    Rule(READ, ("resource.k8s.io",), ("deviceclasses",)),
    Rule(READ, ("storage.k8s.io",), ("csidrivers",)),
    Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
    Rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews", "localsubjectaccessreviews")),
)

_ALLOWED = Decision(True)
_SLICE_VERBS = "get, watch, list, create, update, patch, delete, deletecollection"


class Relations(Protocol):
    """What belongs to which node, read from memory. It must never be older than what a watch has already reported: a
    node asks for a claim the moment it sees the pod."""

    def pods_on(self, node: str) -> Iterable[Document]: ...

    def slice_node(self, name: str) -> str | None:
        """Return the nodeName of a slice; None if the slice does not exist or does not belong to a single node."""
        ...


def decide(node: str, wanted: Attributes, relations: Relations) -> Decision:
    """Decide about a request for a resource."""
    if (special := _SPECIAL.get((wanted.group, wanted.resource))) is not None:
        return special(node, wanted, relations)
    return Decision(any(rule.allows(wanted) for rule in ALWAYS))


def selected(wanted: Attributes, resource: Resource, field: str) -> str | None:
    """Return the value that the request's field selector requires of a field, or None if it requires none."""
    try:
        kind = resource.kind
        selector = field_selectors.parse(wanted.field_selector, resource.api_version, kind.kind, kind.namespaced)
    except BadRequest:
        return None
    return selector.exact(field)


def _slices(node: str, wanted: Attributes, relations: Relations) -> Decision:
    if wanted.subresource:
        return Decision(False, "cannot authorize ResourceSlice subresources")
    match wanted.verb:
        case "create":
            return _ALLOWED
        case "get" | "update" | "patch" | "delete":
            return _ALLOWED if relations.slice_node(wanted.name) == node else _unrelated(node)
        case "list" | "watch" | "deletecollection":
            return slices_of(node, wanted)
    return Decision(False, f"only the following verbs are allowed for a ResourceSlice: {_SLICE_VERBS}")


def slices_of(node: str, wanted: Attributes) -> Decision:
    """Decide about a request for many slices, which must select those of the node."""
    if selected(wanted, RESOURCE_SLICES, "spec.nodeName") == node:
        return _ALLOWED
    return Decision(False, "can only list/watch/deletecollection resourceslices with nodeName field selector")


def _pods(node: str, wanted: Attributes, relations: Relations) -> Decision:
    match wanted.verb, wanted.subresource:
        case "get", "":
            return _ALLOWED if _runs(node, wanted.namespace, wanted.name, relations) else _unrelated(node)
        case (("list" | "watch"), ""):
            name = wanted.name or selected(wanted, PODS, "metadata.name")
            if selected(wanted, PODS, "spec.nodeName") == node:
                return _ALLOWED
            if name and _runs(node, wanted.namespace, name, relations):
                return _ALLOWED
            return Decision(False, "can only list/watch pods with spec.nodeName field selector")
        case ("create" | "delete", "") | ("update" | "patch", "status"):
            return _ALLOWED
        case "create", "eviction":
            if _runs(node, wanted.namespace, wanted.name, relations):
                return _ALLOWED
            return Decision(False, f"node {node} can only evict pods with spec.nodeName set to itself")
    return Decision(False)


def _nodes(node: str, wanted: Attributes, relations: Relations) -> Decision:
    match wanted.verb, wanted.subresource:
        case ("create" | "update" | "patch", "") | ("update" | "patch", "status"):
            return _ALLOWED
        case (("get" | "list" | "watch"), ""):
            name = wanted.name or selected(wanted, NODES, "metadata.name")
            if name == node:
                return _ALLOWED
            what = f"'{name}'" if name else "all nodes"
            return Decision(False, f"node '{node}' cannot read {what}, only its own Node object")
    return Decision(False)


def _used_object(resource: Resource | None) -> Callable[[str, Attributes, Relations], Decision]:
    """Return the decision for kinds of which a node reads single objects that its pods use. With a resource, the node
    may also list and watch the object by its name."""

    def decide_read(node: str, wanted: Attributes, relations: Relations) -> Decision:
        name = wanted.name
        if wanted.subresource:
            return Decision(False, "cannot get subresource")
        if resource is not None and wanted.verb in READ:
            name = name or selected(wanted, resource, "metadata.name") or ""
        elif wanted.verb != "get":
            return Decision(False, "can only get individual resources of this type")
        return _ALLOWED if _uses(node, wanted, name, relations) else _unrelated(node)

    return decide_read


def _accounts(node: str, wanted: Attributes, relations: Relations) -> Decision:
    if (wanted.verb, wanted.subresource) not in (("get", ""), ("create", "token")):
        return Decision(False, "can only create tokens for individual service accounts")
    return _ALLOWED if _uses(node, wanted, wanted.name, relations) else _unrelated(node)


def _leases(node: str, wanted: Attributes, relations: Relations) -> Decision:
    if wanted.verb not in ("get", "create", "update", "patch", "delete"):
        return Decision(False, "can only get, create, update, patch, or delete a node lease")
    if wanted.namespace != NODE_LEASES:
        return Decision(False, f'can only access leases in the "{NODE_LEASES}" system namespace')
    if wanted.verb != "create" and wanted.name != node:
        return Decision(False, "can only access node lease with the same name as the requesting node")
    return _ALLOWED


def _uses(node: str, wanted: Attributes, name: str, relations: Relations) -> bool:
    return bool(name) and any(
        pod["metadata"].get("namespace") == wanted.namespace and name in referenced(pod, wanted.resource)
        for pod in relations.pods_on(node)
    )


def _runs(node: str, namespace: str, name: str, relations: Relations) -> bool:
    return any(
        (pod["metadata"].get("namespace"), pod["metadata"]["name"]) == (namespace, name)
        for pod in relations.pods_on(node)
    )


def _unrelated(node: str) -> Decision:
    return Decision(False, f"no relationship found between node '{node}' and this object")


_SPECIAL: dict[tuple[str, str], Callable[[str, Attributes, Relations], Decision]] = {
    ("", "configmaps"): _used_object(CONFIG_MAPS),
    ("", "nodes"): _nodes,
    ("", "persistentvolumeclaims"): _used_object(None),
    ("", "pods"): _pods,
    ("", "secrets"): _used_object(SECRETS),
    ("", "serviceaccounts"): _accounts,
    ("coordination.k8s.io", "leases"): _leases,
    ("resource.k8s.io", "resourceclaims"): _used_object(None),
    ("resource.k8s.io", "resourceslices"): _slices,
}
