"""What a kind does to an object that is created or updated: what the server sets, keeps and clears.

Functions on storage documents; each may change the document it is given, never the old one.
"""

from collections.abc import Sequence
from datetime import datetime

from devlet.cluster.store import pods
from devlet.errors import BadRequest
from devlet.objects.defaults import default
from devlet.objects.documents import Document, copy
from devlet.objects.kinds import Kind
from devlet.objects.patches.field_sets import FieldSet
from devlet.objects.timestamps import format_time
from devlet.objects.validation.pod import MIRROR_ANNOTATION

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
# What an update of the status subresource cannot change. The others take metadata from the new object.
_STATUS_KEEPS = ("labels", "annotations", "finalizers", "ownerReferences")
_STATUS_KEEPS_METADATA = {"ResourceClaim", "DeviceTaintRule", "ResourcePoolStatusRequest"}

_GATED: Document = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def prepare_create(kind: Kind, document: Document, *, uid: str, now: datetime) -> None:
    """Everything but the name, the version and managedFields."""
    metadata = document["metadata"]
    if metadata.get("resourceVersion"):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    for key in _SET_BY_SERVER:
        metadata.pop(key, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = format_time(now)
    if kind.counts_generation:
        metadata["generation"] = 1
    # A node agent registers its node together with the status; nobody else may set one on creation.
    if kind.has_status and kind.kind != "Node" and "status" in document:
        document["status"] = {}
    if kind.kind == "Pod":
        _set_account(document)
    default(document, now=now)
    if kind.kind == "Pod" and document["spec"].get("schedulingGates"):
        document["status"] = pods.with_condition(document["status"], _GATED, now)


def _set_account(pod: Document) -> None:
    """A mirror pod has none: its static pod runs without the cluster."""
    spec, annotations = pod["spec"], pod["metadata"].get("annotations") or {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account or MIRROR_ANNOTATION not in annotations:
        spec["serviceAccountName"] = account or "default"


def prepare_update(
    kind: Kind, document: Document, old: Document, *, subresource: str, now: datetime, live: Document | None = None
) -> None:
    """`live` is the stored object too, as the document was made from it: a part that is still its own was not changed,
    and needs no copy of the old."""
    metadata, before = document["metadata"], old["metadata"]
    for key in _KEPT_BY_SERVER:
        _keep(metadata, before, key)
    metadata["uid"] = metadata.get("uid") or before["uid"]
    if subresource == "status":
        _keep_all_but(document, old, ("status", "metadata"), live or {})
        keeps = _STATUS_KEEPS if kind.kind in _STATUS_KEEPS_METADATA else ("ownerReferences",)
        for key in keeps if kind.kind != "Node" else ():
            _keep(metadata, before, key)
        if kind.kind == "ResourceClaim":
            _drop_released_devices(document, old)
    elif subresource == "finalize":
        finalizers = document.get("spec", {}).get("finalizers", [])
        _keep_all_but(document, old, (), {})
        document["spec"] = {**old.get("spec", {}), "finalizers": finalizers}
    elif kind.has_status:
        _keep(document, old, "status")
    default(document, now=now, old=old)
    if kind.counts_generation and document.get("spec") != old.get("spec"):
        metadata["generation"] = before.get("generation", 0) + 1


_SET_BY_ADMISSION = ("serviceAccountName", "serviceAccount", "priority", "preemptionPolicy", "tolerations")


def as_managed(document: Document, sent: Document) -> Document:
    """The object as far as its creator owns it: what admission adds to a pod is nobody's, or else an apply that does
    not mention it would take it away."""
    if document["kind"] != "Pod":
        return document
    added = [key for key in _SET_BY_ADMISSION if key not in sent]
    return {**document, "spec": {k: v for k, v in document["spec"].items() if k not in added}}


def reset_fields(kind: Kind, subresource: str) -> FieldSet | None:
    """What a write to this endpoint cannot own, where that differs from the rule for all kinds."""
    if subresource == "status" and kind.kind in _STATUS_KEEPS_METADATA:
        return FieldSet({"f:metadata": {}, "f:spec": {}})
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


def _drop_released_devices(claim: Document, old: Document) -> None:
    """The status of a device that was allocated and no longer is means nothing."""
    status = claim.get("status") or {}
    released = _allocated(old.get("status") or {}) - _allocated(status)
    if released and status.get("devices"):
        left = [device for device in status["devices"] if _identity(device) not in released]
        claim["status"] = {k: v for k, v in status.items() if k != "devices"} | ({"devices": left} if left else {})


def _allocated(status: Document) -> set[tuple[str | None, ...]]:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return {_identity(result) for result in results}


def _identity(device: Document) -> tuple[str | None, ...]:
    return tuple(device.get(key) for key in ("driver", "pool", "device", "shareID"))


def is_finished(document: Document) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    metadata = document["metadata"]
    return (
        metadata.get("deletionTimestamp") is not None
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not (document["kind"] == "Namespace" and document.get("spec", {}).get("finalizers"))
    )


def ordered(document: Document) -> Document:
    """With the keys in the reference's order: people read these documents. Without managedFields if nobody has any."""
    metadata = _METADATA | document["metadata"]
    for key in _METADATA:
        if metadata[key] is None:
            del metadata[key]
    if not metadata.get("managedFields"):
        metadata.pop("managedFields", None)
    return _TOP | document | {"metadata": metadata}
