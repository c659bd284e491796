"""Which changes a node may make, where that depends on the content of the object (Kubernetes' NodeRestriction).

A node writes only its own Node object, lease and pods. The only pods that it creates are the mirrors of its static
pods, which may not refer to other objects: a node reads what its pods use, so it could otherwise read any secret or
claim by creating a pod that refers to it.
"""

from devlet.auth.rules import Attributes
from devlet.objects.documents import Document
from devlet.objects.pods import references
from devlet.objects.subdocuments import mapping, mappings
from devlet.objects.validation.pod import MIRROR_ANNOTATION

__all__ = ["new_pod_refusal", "refusal"]

_RESTRICTED_LABELS = "node-restriction.kubernetes.io/"
_LEASE = "can only access node lease with the same name as the requesting node"


def refusal(node: str, wanted: Attributes, new: Document | None, old: Document | None) -> str | None:
    """Return why the node may not make the change, or None if it may. See `new_pod_refusal` for the creation of pods,
    and `admission` for slices."""
    match wanted.group, wanted.resource:
        case "", "nodes":
            return _node_object_refusal(node, wanted, new or {}, old)
        case "", "pods":
            return _pod_refusal(node, wanted, new, old or {})
        case "coordination.k8s.io", "leases":
            return None if _metadata(new or old or {}).get("name") == node else _LEASE
        case "", "serviceaccounts" if wanted.subresource == "token":
            return _token_refusal(new or {})
    return None


def _node_object_refusal(node: str, wanted: Attributes, new: Document, old: Document | None) -> str | None:
    name = wanted.name or str(_metadata(new).get("name", ""))
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    if old is not None and (_spec(new).get("taints") or []) != (_spec(old).get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    # An owner that does not exist would have the Node object collected; the labels keep workloads off the node.
    if (_metadata(new).get("ownerReferences") or []) != (_metadata(old or {}).get("ownerReferences") or []):
        return f'node "{node}" is not allowed to modify ownerReferences'
    if _restricted_labels(new) != _restricted_labels(old or {}):
        return f'node "{node}" is not allowed to modify labels: {_RESTRICTED_LABELS}*'
    return None


def _restricted_labels(document: Document) -> dict[str, object]:
    labels = _metadata(document).get("labels") or {}
    return {key: value for key, value in labels.items() if key.startswith(_RESTRICTED_LABELS)}


def _pod_refusal(node: str, wanted: Attributes, new: Document | None, old: Document) -> str | None:
    """Return why the node may not change the pod `old`. For an eviction, too, `old` is the pod."""
    own = _spec(old).get("nodeName") == node
    if wanted.verb == "delete":
        return None if own else f'node "{node}" can only delete pods with spec.nodeName set to itself'
    if wanted.subresource != "status":
        return None
    if not own:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    # These fields decide which claims the node may read.
    before, after = _status(old), _status(new or {})
    for key in ("resourceClaimStatuses", "extendedResourceClaimStatus"):
        if (before.get(key) or None) != (after.get(key) or None):
            return f'node "{node}" cannot update {key} of pods'
    if _metadata(old).get("labels", {}) != _metadata(new or {}).get("labels", {}):
        return f'node "{node}" cannot update labels through pod status'
    return None


def _token_refusal(request: Document) -> str | None:
    bound = mapping(_spec(request), "boundObjectRef") or {}
    if bound.get("kind") != "Pod":
        return "node requested token not bound to a pod"
    return None if bound.get("uid") else "node requested token with a pod binding without a uid"


def new_pod_refusal(node: str, uid: str, pod: Document) -> str | None:
    """Return why the node, whose Node object has that uid, may not create the pod; None if it may."""
    metadata, spec = _metadata(pod), _spec(pod)
    if MIRROR_ANNOTATION not in (mapping(metadata, "annotations") or {}):
        return f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "{node}" can only create mirror pods'
    if spec.get("nodeName") != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    if found := _owner_refusal(node, uid, list(mappings(metadata, "ownerReferences"))):
        return found
    if kind := references.first(spec):
        return f'node "{node}" can not create pods that reference {kind}'
    return None


def _owner_refusal(node: str, uid: str, owners: list[Document]) -> str | None:
    if len(owners) > 1:
        return f'node "{node}" can only create pods with a single owner reference set to itself'
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        return f'node "{node}" can only create pods with an owner reference set to itself'
    if not owner.get("controller"):
        return f'node "{node}" can only create pods with a controller owner reference set to itself'
    if owner.get("blockOwnerDeletion"):
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    if owner.get("uid") != uid:
        return f"node {node} UID mismatch: expected {owner.get('uid')} got {uid}"
    return None


def _metadata(document: Document) -> Document:
    return mapping(document, "metadata") or {}


def _spec(document: Document) -> Document:
    return mapping(document, "spec") or {}


def _status(document: Document) -> Document:
    return mapping(document, "status") or {}
