"""Admin access to devices: only in namespaces that an administrator has labelled for it.

It is checked when a claim or template is created, and when an allocation is first written, but not afterwards.
"""

from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, forbidden

NAMESPACE_LABEL = "resource.kubernetes.io/admin-access"

_DETAIL = f"admin access to devices requires the `{NAMESPACE_LABEL}: true` label on the containing namespace"


def check_create(document: Document, namespace: Document | None) -> Causes:
    """Check a new object. `namespace` is its Namespace object; without one, the label counts as missing."""
    spec = document.get("spec") or {}
    if document.get("kind") == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    if _is_allowed(namespace):
        return
    for i, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        # This path includes neither `exactly` nor a template's inner `spec`.
        if (request.get("exactly") or {}).get("adminAccess"):
            yield forbidden(f"spec.devices.requests[{i}].adminAccess", _DETAIL)


def check_status_update(document: Document, old: Document, namespace: Document | None) -> Causes:
    allocation = (document.get("status") or {}).get("allocation")
    if not allocation or (old.get("status") or {}).get("allocation") or _is_allowed(namespace):
        return
    for i, result in enumerate((allocation.get("devices") or {}).get("results") or ()):
        if result.get("adminAccess"):
            yield forbidden(f"status.allocation.devices.results[{i}].adminAccess", _DETAIL)


def _is_allowed(namespace: Document | None) -> bool:
    metadata = (namespace or {}).get("metadata") or {}
    return (metadata.get("labels") or {}).get(NAMESPACE_LABEL) == "true"
