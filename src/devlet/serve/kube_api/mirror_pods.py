"""Which pods a node may create: the mirrors of its static pods, which belong to it and refer to nothing.

Whoever could refer to a secret or a claim in a pod of its own could read it: nodes read what their pods use.
"""

from devlet.objects.documents import Document
from devlet.objects.pods import references as api_references
from devlet.objects.subdocuments import mapping, mappings
from devlet.objects.validation.pod import MIRROR_ANNOTATION

__all__ = ["refusal"]


def refusal(node: str, uid: str, pod: Document) -> str | None:
    """Why the node, whose Node object has that uid, may not create the pod."""
    metadata, spec = mapping(pod, "metadata") or {}, mapping(pod, "spec") or {}
    if MIRROR_ANNOTATION not in (mapping(metadata, "annotations") or {}):
        return f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "{node}" can only create mirror pods'
    if spec.get("nodeName") != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    if found := _owner_refusal(node, uid, list(mappings(metadata, "ownerReferences"))):
        return found
    if kind := api_references.first(spec):
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
