"""Field ownership: the list `metadata.managedFields`, updated on every write.

An entry stands for a manager, an operation (Apply or Update), a subresource and, for updates, an API version. Several
entries may own the same field. A manager loses a field only when another manager changes its value. An object without
entries stays without them on updates, because a client asked for that by clearing the list.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.patches.field_sets import EMPTY, Comparison, FieldSet, compare, parse
from devlet.objects.schema.messages import message_of

APPLY = "Apply"
UPDATE = "Update"

MAX_UPDATE_ENTRIES = 10
MAX_SENT_ENTRIES = 1_000  # longer lists from clients are ignored
_ANCIENT = "ancient-changes"  # the oldest updates beyond the limit are merged into this entry

_NEVER_MANAGED = {"apiVersion", "kind", "metadata"}
_NEVER_MANAGED_METADATA = {
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
}

SPEC = FieldSet({"f:spec": {}})
STATUS = FieldSet({"f:status": {}})


class Entry(Struct, frozen=True):
    manager: str
    operation: str
    api_version: str
    subresource: str
    fields: FieldSet
    time: str = ""
    raw: Document | None = None  # the stored form, if it exists and has not changed since

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return the identity of the entry. An apply in another version belongs to the same configuration."""
        return self.manager, self.operation, self.subresource, "" if self.operation == APPLY else self.api_version

    def changed(self, fields: FieldSet, time: str) -> "Entry":
        same = fields is self.fields and time == self.time
        return self if same else replace(self, fields=fields, time=time, raw=None)

    def encode(self) -> Document:
        if self.raw is not None:
            return self.raw
        entry = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.format(),
            "subresource": self.subresource,
        }
        return {key: value for key, value in entry.items() if value or key == "fieldsV1"}


def updated(
    old: Document | None,
    new: Document,
    manager: str,
    api_version: str,
    subresource: str,
    now: str,
    *,
    reset: FieldSet | None = None,
) -> list[Document]:
    """Return the list for `new`, which `manager` made from `old` by a create, an update or a patch other than apply.

    Both are complete objects in one version, as they are stored, except that `new` has the managedFields that the
    client sent, if any. `reset` names the fields that this endpoint never writes; by default it depends on the
    subresource. `now` is the time as it appears in objects.
    """
    entries = _before(old, new, subresource)
    if old is not None and not entries:
        return []
    message = message_of(str(new.get("apiVersion")), str(new.get("kind")))
    found = compare(manageable(old) if old else None, manageable(new), message)
    found = Comparison(
        found.written.without_below(reset_fields(subresource) if reset is None else reset), found.removed
    )
    own = Entry(manager, UPDATE, api_version, subresource, EMPTY)
    return encode(_capped(_written(entries, own, found, now), own))


def _written(entries: list[Entry], own: Entry, found: Comparison, now: str) -> list[Entry]:
    before = next((entry for entry in entries if entry.key == own.key), own)
    fields = before.fields.without_below(found.removed) | found.written
    others = [deprived(entry, found) for entry in entries if entry.key != own.key]
    time = before.time if fields == before.fields else now
    return [*others, before.changed(fields, time)]


def deprived(entry: Entry, found: Comparison) -> Entry:
    """Return the entry without the fields that another manager changed."""
    return entry.changed((entry.fields - found.written).without_below(found.removed), entry.time)


def _before(old: Document | None, new: Document, subresource: str) -> list[Entry]:
    """Return the entries before the write. A valid list from the client replaces them; an empty one clears them."""
    if not subresource and "managedFields" in metadata(new):
        sent = metadata(new)["managedFields"]
        if not sent or sent == [{}]:
            return []
        if sent == metadata(old or {}).get("managedFields"):
            return stored(old)
        try:
            return decode(sent)
        except BadRequest:
            pass
    return stored(old)


def stored(document: Document | None) -> list[Entry]:
    """Return the entries of an object; none if they are invalid. Their sets are as `encode` wrote them."""
    try:
        raw = metadata(document or {}).get("managedFields") or []
        return [replace(_decode_entry(entry, FieldSet), raw=entry) for entry in raw]
    except BadRequest:
        return []


def decode(managed_fields: Any) -> list[Entry]:
    if not isinstance(managed_fields, list):
        raise BadRequest("metadata.managedFields: expected a list")
    if len(managed_fields) > MAX_SENT_ENTRIES:
        raise BadRequest(f"metadata.managedFields: {len(managed_fields)} entries, limit is {MAX_SENT_ENTRIES}")
    entries = {entry.key: entry for entry in (_decode_entry(raw, parse) for raw in managed_fields)}
    return list(entries.values())


def _decode_entry(raw: Any, read: Callable[[Any], FieldSet]) -> Entry:
    if not isinstance(raw, dict) or raw.get("operation") not in (APPLY, UPDATE):
        raise BadRequest('metadata.managedFields: each entry must have the operation "Apply" or "Update"')
    if raw.get("fieldsType") != "FieldsV1":
        raise BadRequest('metadata.managedFields: fieldsType must be "FieldsV1"')
    names = [raw.get(key) or "" for key in ("manager", "operation", "apiVersion", "subresource", "time")]
    if not all(isinstance(name, str) for name in names):
        raise BadRequest("metadata.managedFields: manager, apiVersion, subresource and time must be strings")
    manager, operation, api_version, subresource, time = names
    return Entry(manager, operation, api_version, subresource, read(raw.get("fieldsV1") or {}), time)


def encode(entries: Iterable[Entry]) -> list[Document]:
    """Return the list as it is stored: without empty entries, applies first, then by time."""
    kept = [entry for entry in entries if entry.fields]
    kept.sort(key=lambda e: (e.operation, e.time, e.manager, e.api_version, e.subresource))
    return [entry.encode() for entry in kept]


def reset_fields(subresource: str) -> FieldSet:
    """Return the fields that a client cannot write: the status, or for the subresource "status" the spec."""
    match subresource:
        case "":
            return STATUS
        case "status":
            return SPEC
        case _:
            return EMPTY


def manageable(document: Document) -> Document:
    """Return the document without fields that never have a manager: those that the server sets, and the object's
    identity."""
    result = {key: value for key, value in document.items() if key not in _NEVER_MANAGED}
    if managed := {k: v for k, v in metadata(document).items() if k not in _NEVER_MANAGED_METADATA}:
        result["metadata"] = managed
    return result


def _capped(entries: list[Entry], own: Entry) -> list[Entry]:
    """Limit the number of updates by merging the oldest into one entry. The fields stay managed."""
    updates = [e for e in entries if e.operation == UPDATE and e.fields]
    surplus = len(updates) - MAX_UPDATE_ENTRIES
    if surplus <= 0:
        return entries
    ancient = {entry.api_version: entry for entry in updates if entry.manager == _ANCIENT}
    rest = [entry for entry in entries if entry not in ancient.values()]
    for entry in sorted((e for e in updates if e.manager != _ANCIENT and e.key != own.key), key=lambda e: e.time):
        if len(rest) + len(ancient) <= len(entries) - surplus:
            break
        rest.remove(entry)
        bucket = ancient.get(entry.api_version, Entry(_ANCIENT, UPDATE, entry.api_version, "", EMPTY))
        ancient[entry.api_version] = bucket.changed(bucket.fields | entry.fields, entry.time)
    return [*rest, *ancient.values()]


def metadata(document: Document) -> Document:
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}
