"""The claim that is made from a template for one entry of a pod, as the claim controller makes it.

Pure, and the template stays as it is: it is shared with everyone who watches. The claim is born with the finalizer that
protects an allocation, so that whoever allocates it needs one write and not two.
"""

from typing import Final

from devlet.objects.documents import Document, copy
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod

__all__ = [
    "DELETE_PROTECTION",
    "ENTRY_ANNOTATION",
    "EXTENDED_ANNOTATION",
    "claim_from_template",
    "generate_name",
    "is_generated_for",
]

DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
ENTRY_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
EXTENDED_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"  # made from no template
_NAME_MAX = 57  # a hyphen and 5 random characters make 63


def generate_name(pod_name: str, entry_name: str) -> str:
    """Where it would get too long both names are cut, in proportion, and no hyphen ends it."""
    whole = f"{pod_name}-{entry_name}-"
    if len(whole) <= _NAME_MAX:
        return whole
    pod_part, entry_part = (name[: len(name) * _NAME_MAX // len(whole)] for name in (pod_name, entry_name))
    return f"{pod_part.rstrip('.')}-{entry_part}"  # no name may have a hyphen after a dot


def claim_from_template(template: Document, pod: Pod, entry_name: str) -> Document:
    """Its name is left to the API. A pod in a file may have no UID; its claim has no owner then. The keys are in the
    order in which the API writes them."""
    wanted = template["spec"].get("metadata") or {}
    metadata: Document = {
        "generateName": generate_name(pod.metadata.name, entry_name),
        "namespace": pod.metadata.namespace,
    }
    if labels := wanted.get("labels"):
        metadata["labels"] = dict(labels)
    metadata["annotations"] = {**(wanted.get("annotations") or {}), ENTRY_ANNOTATION: entry_name}
    if pod.uid:
        owner = {"kind": "Pod", "name": pod.name, "uid": pod.uid, "apiVersion": "v1", "controller": True}
        metadata["ownerReferences"] = [owner]
    metadata["finalizers"] = [DELETE_PROTECTION]
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind.kind,
        "metadata": metadata,
        "spec": copy(template["spec"]["spec"]),
    }


def is_generated_for(claim: ObjectMeta, pod: Pod, entry_name: str) -> bool:
    """Whether a claim, by its metadata, was made for this entry of the pod. The annotation says so; Kubernetes up to
    1.27 did not set it, and gave the claim the names of both."""
    owner = claim.controller
    if owner is None or (owner.api_version, owner.kind, owner.uid) != ("v1", "Pod", pod.uid):
        return False
    if claim.namespace != pod.metadata.namespace:
        return False
    annotated = claim.annotations.get(ENTRY_ANNOTATION)
    return annotated == entry_name if annotated is not None else claim.name == f"{pod.name}-{entry_name}"
