"""How the server prepares an object that is created or updated: what it sets, keeps and clears.

These are functions on storage documents. Each may change the document that it is given, but not the old one.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from devlet.cluster.store.strategy import strategy_of
from devlet.errors import BadRequest
from devlet.objects.documents import Document, copy
from devlet.objects.kind_rules import default
from devlet.objects.kinds import Kind
from devlet.objects.patches.field_sets import EMPTY, FieldSet
from devlet.objects.values.timestamps import format_time

# In the order in which the reference writes them; the ledger fills the version in.
_TOP: Document = {"kind": None, "apiVersion": None, "metadata": None}
_METADATA: Document = {
    "name": None,
    "generateName": None,
    "namespace": None,
    "uid": None,
    "resourceVersion": "",
    "generation": None,
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "deletionGracePeriodSeconds": None,
}
_SET_BY_SERVER = (
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_KEPT_BY_SERVER = ("selfLink", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def prepare_create(kind: Kind, document: Document, *, uid: str, now: datetime) -> None:
    """Set everything but the name, the version and managedFields."""
    strategy = strategy_of(kind)
    metadata = document["metadata"]
    if metadata.get("resourceVersion"):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    for key in _SET_BY_SERVER:
        metadata.pop(key, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = format_time(now)
    if kind.counts_generation:
        metadata["generation"] = 1
    if kind.has_status and not strategy.accepts_status and "status" in document:
        document["status"] = {}
    strategy.before_defaults(document)
    default(document, now=now)
    strategy.after_defaults(document, now)


def prepare_update(
    kind: Kind, document: Document, old: Document, *, subresource: str, now: datetime, live: Document | None = None
) -> None:
    """Set and keep the fields that this writer may not change.

    `live` is the stored object that the document was made from. A part that the two still share was not changed, so it
    needs no copy of the old one."""
    metadata, before = document["metadata"], old["metadata"]
    for key in _KEPT_BY_SERVER:
        _keep(metadata, before, key)
    metadata["uid"] = metadata.get("uid") or before["uid"]
    if subresource == "status":
        _keep_all_but(document, old, ("status", "metadata"), live or {})
        strategy = strategy_of(kind)
        for key in strategy.status_keeps:
            _keep(metadata, before, key)
        strategy.update_status(document, old)
    elif subresource == "finalize":
        finalizers = document.get("spec", {}).get("finalizers", [])
        _keep_all_but(document, old, (), {})
        document["spec"] = {**old.get("spec", {}), "finalizers": finalizers}
    elif kind.has_status:
        _keep(document, old, "status")
    default(document, now=now, old=old)
    if kind.counts_generation and document.get("spec") != old.get("spec"):
        metadata["generation"] = before.get("generation", 0) + 1


def without_fields(document: Document, fields: Collection[str]) -> Document:
    """Return the object without these fields of its spec."""
    return {**document, "spec": {k: v for k, v in document["spec"].items() if k not in fields}} if fields else document


def reset_fields(kind: Kind, subresource: str) -> FieldSet | None:
    """Return the fields that a write to this endpoint cannot own, if they differ from the rule for all kinds."""
    if subresource == "status" and "labels" in strategy_of(kind).status_keeps:
        return FieldSet({"f:metadata": {}, "f:spec": {}})
    if not subresource and not kind.has_status:  # a custom resource whose status is a field like any other
        return EMPTY
    return None


def _keep(new: Document, old: Document, key: str) -> None:
    if key in old:
        new[key] = copy(old[key])  # defaults may yet change it
    else:
        new.pop(key, None)


def _keep_all_but(new: Document, old: Document, changing: Sequence[str], live: Document) -> None:
    for key in new.keys() | old.keys():
        if key not in changing and (key not in live or new.get(key) is not live[key]):
            _keep(new, old, key)


def is_finished(kind: Kind, document: Document) -> bool:
    """Return True if an object that is being deleted has nothing left to wait for."""
    metadata = document["metadata"]
    return (
        metadata.get("deletionTimestamp") is not None
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not strategy_of(kind).deletion.has_content(document)
    )


def ordered(document: Document) -> Document:
    """Return the object with its keys in the reference's order, because people read these documents, and without
    managedFields if they are empty."""
    metadata = _METADATA | document["metadata"]
    for key in _METADATA:
        if metadata[key] is None:
            del metadata[key]
    if not metadata.get("managedFields"):
        metadata.pop("managedFields", None)
    return _TOP | document | {"metadata": metadata}
