"""User-defined kinds: convert a CustomResourceDefinition to a `Kind` of the catalogue."""

from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.kinds import Kind
from devlet.objects.values.timestamps import format_time

CLEANUP = (
    "customresourcecleanup.apiextensions.k8s.io"  # the finalizer that keeps a definition until its objects are gone
)
DEFINITION = Kind(
    "CustomResourceDefinition",
    "customresourcedefinitions",
    ("apiextensions.k8s.io/v1",),
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    subresources=("status",),
    counts_generation=True,
    delete_returns_object=True,
)


def kind_of(definition: Document) -> Kind:
    """Return the kind that a valid definition describes."""
    spec = definition["spec"]
    names, versions = spec["names"], spec["versions"]
    served = [version for version in versions if version.get("served")]
    stored = next(version["name"] for version in versions if version.get("storage"))
    # The stored version is preferred; the others follow in the order in which they are listed.
    served.sort(key=lambda version: version["name"] != stored)
    with_status = any("status" in (version.get("subresources") or {}) for version in versions)
    return Kind(
        names["kind"],
        names["plural"],
        tuple(f"{spec['group']}/{version['name']}" for version in served),
        namespaced=spec.get("scope") == "Namespaced",
        storage=f"{spec['group']}/{stored}",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=("status",) if with_status else (),
        counts_generation=True,
        list_kind=names.get("listKind") or f"{names['kind']}List",
    )


def version_of(definition: Document, api_version: str) -> Document | None:
    """Return the entry of one version: its schema and its printer columns."""
    spec = definition["spec"]
    for version in spec["versions"]:
        if f"{spec['group']}/{version['name']}" == api_version:
            found: Document = version
            return found
    return None


def established(definition: Document, now: datetime) -> Document:
    """Return the status of a definition whose kind is served."""
    spec, status = definition["spec"], definition.get("status") or {}
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    names = {"listKind": f"{spec['names']['kind']}List", "singular": spec["names"]["kind"].lower(), **spec["names"]}
    versions = list(dict.fromkeys([*(status.get("storedVersions") or ()), stored]))
    conditions = [
        _condition(status, "NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition(status, "Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    return {"acceptedNames": names, "conditions": conditions, "storedVersions": versions}


def _condition(status: Document, type_: str, reason: str, message: str, now: datetime) -> Document:
    for condition in status.get("conditions") or ():
        if condition.get("type") == type_ and condition.get("status") == "True":
            found: Document = condition
            return found
    return {
        "type": type_,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(now),
    }
