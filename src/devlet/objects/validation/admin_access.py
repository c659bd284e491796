"""Admin access to devices: only in namespaces that an administrator labelled for it.

Checked when a claim or template is created, and when an allocation is written for the first time; never again later.
"""

from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, forbidden

NAMESPACE_LABEL = "resource.kubernetes.io/admin-access"

_DETAIL = f"admin access to devices requires the `{NAMESPACE_LABEL}: true` label on the containing namespace"


def check_create(document: Document, namespace: Document | None) -> Causes:
    """`namespace` is the Namespace object; without one there is no label."""
    spec = document.get("spec") or {}
    if document.get("kind") == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    if _is_allowed(namespace):
        return
    for i, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        # Neither `exactly` nor a template's inner `spec` is part of this path.
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
