"""Prepare writes by Kubernetes' rules, from the newest state of the object.

Nothing here awaits, so no other write can come in between, and no write needs a retry. Each step returns the object as
it will be, and the write, or None if there is nothing to write.
"""

from typing import Protocol

import msgspec

from devlet.cluster.client import (
    ApplyPatch,
    DeleteOptions,
    JsonPatch,
    MergePatch,
    Patch,
    StrategicMergePatch,
    WriteOptions,
)
from devlet.cluster.store import deletion, guards, preparing
from devlet.cluster.store.admission import Admission
from devlet.cluster.store.incoming import accept
from devlet.cluster.store.ledger import Pending
from devlet.cluster.store.randomness import Randomness
from devlet.cluster.store.records import Newest, Record
from devlet.cluster.store.strategy import strategy_of
from devlet.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    InvalidObject,
    NotFound,
    UnsupportedPatch,
)
from devlet.kit.clock import Clock
from devlet.objects.conversion import convert
from devlet.objects.documents import Document
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kind_rules import Rules
from devlet.objects.kinds import Kind, Resource
from devlet.objects.names import generated_name
from devlet.objects.patches import apply as server_side_apply
from devlet.objects.patches import json_patch, managed_fields, merge_patch, strategic_merge
from devlet.objects.patches.limits import PatchFailed
from devlet.objects.schema.leaves import json_type
from devlet.objects.schema.messages import message_of
from devlet.objects.values.timestamps import format_time

_GENERATED_NAME_TRIES = 8
_DEFAULT_MANAGER = "devlet"

Staged = tuple[Document, Pending | None]


class Objects(Newest, Protocol):
    """The part of the ledger that staging needs."""

    def write(self, kind: Kind, key: ObjectKey, document: Document, *, deleted: bool = False) -> Pending | None: ...


class Staging:
    def __init__(self, ledger: Objects, clock: Clock, rules: Rules) -> None:
        self._ledger = ledger
        self._clock = clock
        self._rules = rules
        self._admission = Admission(ledger, rules)
        self._randomness = Randomness()

    def on(self, objects: Objects) -> "Staging":
        """Return the same steps for another ledger; the result may be used in another thread."""
        return Staging(objects, self._clock, self._rules)

    def create(
        self, resource: Resource, new: Document, namespace: str, options: WriteOptions, *, applied: bool = False
    ) -> Staged:
        now = self._clock.now()
        unmanaged = _unmanaged(resource.kind, new)
        _place(resource, new, namespace)
        self._generate_name(resource, new)
        preparing.prepare_create(resource.kind, new, uid=self._randomness.uid(), now=now)
        self._admission.admit_create(resource, new, options)
        key = key_of(new)
        if self._ledger.newest(resource.kind, key) is not None:
            raise AlreadyExists(f'{resource.name} "{key[1]}" already exists', resource=resource.name, name=key[1])
        guards.check(options, new, None)
        if not applied:
            new["metadata"]["managedFields"] = managed_fields.updated(
                None,
                preparing.without_fields(new, unmanaged),
                _manager(options),
                resource.api_version,
                "",
                format_time(now),
                reset=preparing.reset_fields(resource.kind, ""),
            )
        new = preparing.ordered(new)
        if options.dry_run:
            return _unversioned(new), None
        return new, self._ledger.write(resource.kind, key, new)

    def replacement(self, resource: Resource, new: Document, subresource: str, options: WriteOptions) -> Staged:
        key = key_of(new)
        old = self._ledger.newest(resource.kind, key)
        if old is None and resource.kind.update_creates and not subresource:
            new["metadata"].pop("resourceVersion", None)
            return self.create(resource, new, key[0], options)
        old = self.existing(resource, key)
        _check_version(resource, new, old)
        return self.update(resource, new, old, subresource, options)

    def patch(
        self, resource: Resource, key: ObjectKey, patch: Patch, subresource: str, options: WriteOptions
    ) -> Staged:
        if isinstance(patch, ApplyPatch):
            old = self._ledger.newest(resource.kind, key)
            return self.apply(resource, key, patch, old, subresource, options)
        old = self.existing(resource, key)
        self.stored(resource, old)
        live = convert(old.document(), resource.api_version)
        shaped = live if old.checked else None  # otherwise all of the result has to be checked
        new = accept(resource, _patched(resource, live, patch), options, patched=True, live=shaped)
        _check_address(new["metadata"], key)
        if (wanted := new["metadata"].get("resourceVersion")) and wanted != str(old.version):
            raise _modified(resource, key[1])
        return self.update(resource, new, old, subresource, options, live=shaped)

    def update(
        self,
        resource: Resource,
        new: Document,
        old_record: Record,
        subresource: str,
        options: WriteOptions,
        *,
        live: Document | None = None,
        applied: bool = False,
    ) -> Staged:
        now = self._clock.now()
        old = self.stored(resource, old_record)
        new["metadata"].pop("resourceVersion", None)
        preparing.prepare_update(resource.kind, new, old, subresource=subresource, now=now, live=live)
        self._admission.admit_update(resource, new, old, subresource, options)
        guards.check(options, new, old)
        if not applied:
            new["metadata"]["managedFields"] = managed_fields.updated(
                old,
                new,
                _manager(options),
                resource.api_version,
                subresource,
                format_time(now),
                reset=preparing.reset_fields(resource.kind, subresource),
            )
        new = preparing.ordered(new)
        unchanged = {**new, "metadata": {**new["metadata"], "resourceVersion": str(old_record.version)}}
        if unchanged == old:
            return old, None
        if options.dry_run:
            return unchanged, None
        deleted = preparing.is_finished(resource.kind, new)
        return new, self._ledger.write(resource.kind, old_record.key, new, deleted=deleted)

    def apply(
        self,
        resource: Resource,
        key: ObjectKey,
        patch: ApplyPatch,
        old: Record | None,
        subresource: str,
        options: WriteOptions,
    ) -> Staged:
        if not options.field_manager:
            cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
            raise InvalidObject("PatchOptions.meta.k8s.io", "", [cause])
        if old is None and subresource:
            raise not_found(resource, key[1])
        config = _addressed(resource, patch.document, key)
        live = convert(old.document(), resource.api_version) if old else None
        applied = server_side_apply.apply(
            live,
            config,
            manager=options.field_manager,
            force=patch.force,
            api_version=resource.api_version,
            subresource=subresource,
            now=format_time(self._clock.now()),
            reset=preparing.reset_fields(resource.kind, subresource),
        )
        if live is not None and applied.changed:  # devlet made them, so they need no check
            live["metadata"]["managedFields"] = applied.document["metadata"].get("managedFields")
        new = accept(resource, applied.document, options, patched=True, live=live)
        if old is None:
            new["metadata"].pop("resourceVersion", None)
            return self.create(resource, new, key[0], options, applied=True)
        wanted = config["metadata"].get("resourceVersion")
        if wanted and wanted != str(old.version):
            raise _modified(resource, key[1])
        return self.update(resource, new, old, subresource, options, live=live, applied=True)

    def delete(self, resource: Resource, old: Record, options: DeleteOptions) -> Staged:
        document = self.stored(resource, old)
        guards.check(options, None, document)
        outcome = deletion.decide(resource, document, options, self._clock.now())
        if options.dry_run or (not outcome.remove and outcome.document is None):
            return outcome.document or document, None
        new = {**old.document(), **(outcome.document or document)}  # `document` may be the metadata alone
        pending = self._ledger.write(resource.kind, old.key, new, deleted=outcome.remove)
        if pending is not None:
            pending.record.checked = old.checked
        return new, pending

    def stored(self, resource: Resource, record: Record) -> Document:
        """Return the stored document, or only its metadata if it has values of the wrong type. An older release may
        have stored such an object; it can still be deleted or replaced."""
        document = record.document()
        if record.checked:
            return document
        try:
            accepted = accept(Resource(resource.kind, resource.kind.storage_version), document, WriteOptions())
        except BadRequest:
            version, readable = document["metadata"]["resourceVersion"], msgspec.to_builtins(record.metadata)
            metadata = {"resourceVersion": version, **{key: value for key, value in readable.items() if value}}
            return {"kind": document["kind"], "apiVersion": document["apiVersion"], "metadata": metadata}
        record.checked = accepted == record.document()
        return accepted

    def existing(self, resource: Resource, key: ObjectKey) -> Record:
        if (record := self._ledger.newest(resource.kind, key)) is None:
            raise not_found(resource, key[1])
        return record

    def _generate_name(self, resource: Resource, new: Document) -> None:
        """Generate an unused name if the client asked for one."""
        metadata = new["metadata"]
        if metadata.get("name") or not metadata.get("generateName"):
            return
        for _ in range(_GENERATED_NAME_TRIES):
            metadata["name"] = generated_name(metadata["generateName"], self._randomness.suffix())
            if self._ledger.newest(resource.kind, key_of(new)) is None:
                return


def _patched(resource: Resource, live: Document, patch: JsonPatch | MergePatch | StrategicMergePatch) -> Document:
    try:
        match patch:
            case JsonPatch(operations):
                return json_patch.apply(live, operations)
            case MergePatch(document):
                return merge_patch.apply(live, document)
            case StrategicMergePatch(document):
                message = message_of(resource.api_version, resource.kind.kind)
                if message is None:
                    raise UnsupportedPatch(f"{resource.name}: strategic merge patches exist for built-in kinds only")
                return strategic_merge.apply(live, document, message)
    except PatchFailed as e:
        refused = InvalidObject("", "", [])  # an error of the request, not of an object
        refused.args = (f"the server rejected our request due to an error in our request: {e}",)
        raise refused from e


def _addressed(resource: Resource, document: Document, key: ObjectKey) -> Document:
    """Return an apply configuration with the address of the object, which must be the same as in the request."""
    if not document.get("apiVersion") or not document.get("kind"):
        raise BadRequest("invalid object type: an apply patch needs apiVersion and kind")
    namespace, name = key
    metadata = {} if document.get("metadata") is None else document["metadata"]
    if not isinstance(metadata, dict):
        kind = document["kind"]
        raise BadRequest(f"{kind} cannot be handled as a {kind}: metadata is {json_type(metadata)}, not an object")
    if not metadata.get("name"):
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    _check_address(metadata, key)
    if namespace:
        metadata = {**metadata, "namespace": namespace}
    return {**document, "metadata": metadata}


def _check_address(metadata: Document, key: ObjectKey) -> None:
    """Check that the body has the name and namespace of the request."""
    namespace, name = key
    if metadata.get("name") != name:
        said = metadata.get("name")
        raise BadRequest(f"the name of the object ({said}) does not match the name on the URL ({name})")
    if namespace and metadata.get("namespace") not in (None, "", namespace):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def _place(resource: Resource, new: Document, namespace: str) -> None:
    metadata = new["metadata"]
    if not resource.namespaced:
        namespace = ""
        metadata.pop("namespace", None)
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        metadata["namespace"] = namespace
    elif resource.namespaced:
        raise BadRequest("an empty namespace may not be set during creation")


def _check_version(resource: Resource, new: Document, old: Record) -> None:
    metadata = new["metadata"]
    wanted = metadata.get("resourceVersion")
    if not wanted and resource.kind.update_needs_version:
        text = "Invalid value: 0: must be specified for an update"
        cause = Cause("FieldValueInvalid", text, "metadata.resourceVersion")
        raise InvalidObject(resource.kind_name, metadata["name"], [cause])
    if wanted and wanted != str(old.version):
        raise _modified(resource, metadata["name"])
    if metadata.get("uid") and metadata["uid"] != old.metadata.uid:
        raise Conflict(
            f'Operation cannot be fulfilled on {resource.name} "{metadata["name"]}": Precondition failed: UID in'
            f" precondition: {metadata['uid']}, UID in object meta: {old.metadata.uid}",
            resource=resource.name,
            name=metadata["name"],
        )


def _unmanaged(kind: Kind, sent: Document) -> frozenset[str]:
    """Return the fields of spec that the server will set. The client manages those that it sent."""
    fields = strategy_of(kind).admitted_fields
    return fields.difference(sent.get("spec") or ()) if fields else fields


def _unversioned(document: Document) -> Document:
    """Return the object as a dry run shows it. It was not written, so it has no version."""
    return {**document, "metadata": {k: v for k, v in document["metadata"].items() if k != "resourceVersion"}}


def _manager(options: WriteOptions) -> str:
    return options.field_manager or _DEFAULT_MANAGER


def key_of(document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def not_found(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource.name} "{name}" not found', resource=resource.name, name=name)


def _modified(resource: Resource, name: str) -> Conflict:
    message = (
        f'Operation cannot be fulfilled on {resource.name} "{name}": the object has been modified;'
        " please apply your changes to the latest version and try again"
    )
    return Conflict(message, resource=resource.name, name=name)
