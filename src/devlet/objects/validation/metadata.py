"""Rules for `metadata`, the same for every kind.

Fields that the server sets (uid, creationTimestamp, deletionTimestamp) may be missing in an update: the caller fills
them in from the stored object. Only a different value is rejected.
"""

from collections.abc import Iterator

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import (
    Causes,
    byte_length,
    forbidden,
    immutable,
    invalid,
    name_errors,
    required,
    shown,
    too_long,
    too_many,
)

ANNOTATIONS_MAX = 256 * 1024
OWNERS_MAX = 1_000
FINALIZERS_MAX = 1_000

_SHOWN_CONTROLLERS = 10
_OWNER_MEMBERS = (("apiVersion", "version "), ("kind", ""), ("name", ""), ("uid", ""))
_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_CHECKED = (
    "name",
    "generateName",
    "namespace",
    "generation",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)


def check(metadata: Document, rule: names.Rule, namespaced: bool | None) -> Causes:
    """Check a complete object's metadata. `namespaced` is None if the scope of the kind is not known."""
    yield from _check_name(metadata, rule)
    yield from _check_namespace(metadata.get("namespace") or "", namespaced)
    if (generation := metadata.get("generation") or 0) < 0:
        yield invalid("metadata.generation", generation, "must be greater than or equal to 0")
    if labels := metadata.get("labels"):
        yield from check_labels(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        yield from check_annotations(annotations, "metadata.annotations")
    if references := metadata.get("ownerReferences"):
        if len(references) > OWNERS_MAX:
            yield too_many("metadata.ownerReferences", len(references), OWNERS_MAX)
        else:
            yield from check_owner_references(references)
    if finalizers := metadata.get("finalizers"):
        if len(finalizers) > FINALIZERS_MAX:
            yield too_many("metadata.finalizers", len(finalizers), FINALIZERS_MAX)
        else:
            yield from _check_finalizers(finalizers, custom=namespaced is None)


def is_checked(metadata: Document, old: Document) -> bool:
    """Return whether everything that `check` would examine was already accepted in the stored object."""
    return all(metadata.get(member) == old.get(member) for member in _CHECKED)


def check_update(metadata: Document, old: Document) -> Causes:
    for member in ("name", "namespace"):
        if (value := metadata.get(member) or "") != (before := old.get(member) or ""):
            yield from immutable(f"metadata.{member}", value, before)
    for member in _SET_BY_SERVER:
        if (value := metadata.get(member)) is not None and value != old.get(member):
            yield from immutable(f"metadata.{member}", value, old.get(member))
    generation = metadata.get("generation")
    if generation is not None and generation < (old.get("generation") or 0):
        yield invalid("metadata.generation", generation, "must not be decremented")
    if old.get("deletionTimestamp"):
        yield from _check_no_new_finalizers(metadata, old)


def check_labels(labels: dict[str, str], path: str) -> Causes:
    for key, value in labels.items():
        yield from name_errors(path, key, names.label_key)
        yield from name_errors(path, value, names.label_value)


def check_annotations(annotations: dict[str, str], path: str) -> Causes:
    size = 0
    for key, value in annotations.items():
        yield from name_errors(path, key, names.annotation_key)
        size += byte_length(key) + byte_length(value)
    if size > ANNOTATIONS_MAX:
        yield too_long(path, ANNOTATIONS_MAX)


def check_owner_references(references: list[Document]) -> Causes:
    # The reference names the list, not the item.
    path = "metadata.ownerReferences"
    controllers = [owner for owner in references if owner.get("controller") is True]
    for owner in references:
        yield from _check_owner_reference(owner, path)
    for other in controllers[1:_SHOWN_CONTROLLERS]:
        first, second = (f"{o.get('kind', '')}/{o.get('name', '')}" for o in (controllers[0], other))
        detail = (
            f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        )
        yield invalid(path, references, detail)


def _check_owner_reference(owner: Document, path: str) -> Causes:
    for member, spoken in _OWNER_MEMBERS:
        if not owner.get(member):
            yield invalid(f"{path}.{member}", "", f"{spoken}must not be empty")
    if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
        yield invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")


def _check_name(metadata: Document, rule: names.Rule) -> Iterator[Cause]:
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    if prefix:
        yield from name_errors("metadata.generateName", prefix, lambda text: names.generate_name(rule, text))
    if name:
        yield from name_errors("metadata.name", name, rule)
    elif not prefix:
        yield required("metadata.name", "name or generateName is required")


def _check_namespace(namespace: str, namespaced: bool | None) -> Causes:
    if namespaced is False and namespace:
        yield forbidden("metadata.namespace", "not allowed on this type")
    elif namespaced and not namespace:
        yield required("metadata.namespace")
    elif namespace:
        yield from name_errors("metadata.namespace", namespace, names.dns_label)


_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def _check_finalizers(finalizers: list[str], *, custom: bool) -> Causes:
    """Check finalizers. Those of custom resources need not be qualified."""
    for i, finalizer in enumerate(finalizers):
        path = f"metadata.finalizers[{i}]"
        if names.qualified_name(finalizer):
            yield from name_errors(path, finalizer, names.qualified_name)
        elif not custom and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(path, finalizer, detail)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield invalid("metadata.finalizers", finalizers, "finalizer orphan and foregroundDeletion cannot be both set")


def _check_no_new_finalizers(metadata: Document, old: Document) -> Causes:
    before = set(old.get("finalizers") or [])
    added = [finalizer for finalizer in metadata.get("finalizers") or [] if finalizer not in before]
    if added:
        detail = (
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{', '.join(map(shown, added))}}}"
        )
        yield forbidden("metadata.finalizers", detail)
