"""Create the claim for an entry of a pod from a template, as the claim controller does.

Pure: the template is shared with its watchers and is not modified. The claim is created with the finalizer that
protects an allocation, so that the scheduler needs one write instead of two.
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
# on claims made for extended resources, without a template
EXTENDED_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
_NAME_MAX = 57  # a hyphen and 5 random characters make 63


def generate_name(pod_name: str, entry_name: str) -> str:
    """Return the name prefix. If it would get too long both names are cut in proportion, and the result does not end in
    a hyphen."""
    whole = f"{pod_name}-{entry_name}-"
    if len(whole) <= _NAME_MAX:
        return whole
    pod_part, entry_part = (name[: len(name) * _NAME_MAX // len(whole)] for name in (pod_name, entry_name))
    return f"{pod_part.rstrip('.')}-{entry_part}"  # a dot followed by a hyphen is not valid in a name


def claim_from_template(template: Document, pod: Pod, entry_name: str) -> Document:
    """Return the claim. The API server generates its name. A pod in a file may have no UID; then the claim has no
    owner. The keys are in the order in which the API writes them."""
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
    """Return whether a claim, judging by its metadata, was generated for this entry of the pod. The annotation says so;
    Kubernetes up to 1.27 did not set it, and built the claim's name from the two names."""
    owner = claim.controller
    if owner is None or (owner.api_version, owner.kind, owner.uid) != ("v1", "Pod", pod.uid):
        return False
    if claim.namespace != pod.metadata.namespace:
        return False
    annotated = claim.annotations.get(ENTRY_ANNOTATION)
    return annotated == entry_name if annotated is not None else claim.name == f"{pod.name}-{entry_name}"
