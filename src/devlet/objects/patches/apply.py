"""Server-side apply: a client states all fields that it wants, and the server knows from last time what the client no
longer wants.

The new object is the live object merged with the configuration, minus the fields that only this manager applied before
and leaves out now. If that changes a field of another manager, it is a conflict; with `force` this manager takes the
field over.

Equal values never conflict: the managers then share the field. A null in a configuration is the same as an absent
field. So is an empty list whose elements are managed individually: it does not remove the elements of other managers.
Ownership is recorded by path and not converted between API versions.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from msgspec import Struct

from devlet.errors import MAX_CAUSES, BadRequest, Cause, Conflict
from devlet.objects.documents import Document
from devlet.objects.patches import managed_fields
from devlet.objects.patches.field_sets import Comparison, FieldSet, Tree, compare, field_set
from devlet.objects.patches.limits import check_depth
from devlet.objects.patches.managed_fields import APPLY, UPDATE, Entry, manageable
from devlet.objects.patches.topology import Division, Topology, of
from devlet.objects.schema.messages import Message, message_of

_BEFORE_FIRST_APPLY = "before-first-apply"

_OBJECTS = (Division.STRUCT, Division.MAP, Division.UNTYPED)
_LISTS = (Division.KEYED, Division.SET)

# The fields that identify the object are never pruned, whatever else changes.
_NAMES = FieldSet({"f:apiVersion": {}, "f:kind": {}, "f:metadata": {}})


class Applied(Struct, frozen=True):
    """The result. `document` includes the new managedFields; if nothing `changed`, it is the live object."""

    document: Document
    changed: bool


def apply(
    live: Document | None,
    config: Any,
    *,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str,
    now: str,
    reset: FieldSet | None = None,
) -> Applied:
    """Return the object after the manager's configuration is applied to it. Raises Conflict, which names managers and
    fields.

    `live` is in the same version as `config`. The configuration's resourceVersion and uid, if any, are kept in the
    result for the caller to compare. `reset` names the fields that this endpoint keeps as stored.
    """
    message = _check_object(config, api_version)
    topology = of(message)
    reset = managed_fields.reset_fields(subresource) if reset is None else reset
    wanted = _remove(topology, _checked(topology, config, ""), reset.tree)
    entries = _entries(live, message, api_version, now)
    own = Entry(manager, APPLY, api_version, subresource, field_set(manageable(wanted), message))
    before = next((entry for entry in entries if entry.key == own.key), None)
    others = [entry for entry in entries if entry.key != own.key]
    merged = wanted if live is None else _merged(topology, live, wanted)
    if before is not None:
        merged = _pruned(topology, merged, before.fields, [own, *others])
    found = compare(manageable(live) if live else None, manageable(merged), message)
    if not force:
        _check_conflicts(others, found.written)
    return _finished(live, merged, _settled(others, before, own, found, now))


def _settled(others: list[Entry], before: Entry | None, own: Entry, found: Comparison, now: str) -> list[Entry]:
    """Return all entries after the write. Other managers lose the changed fields, which only happens with `force`."""
    left = [managed_fields.deprived(entry, found) for entry in others]
    if before is not None and (before.fields, before.api_version) == (own.fields, own.api_version):
        now = before.time
    return [*left, own.changed(own.fields, now)]


def _finished(live: Document | None, merged: Document, entries: list[Entry]) -> Applied:
    encoded = managed_fields.encode(entries)
    metadata = {key: value for key, value in managed_fields.metadata(merged).items() if key != "managedFields"}
    if encoded:
        metadata["managedFields"] = encoded
    document = {**merged, "metadata": metadata}
    if live is not None and document == live:
        return Applied(live, changed=False)
    return Applied(document, changed=True)


def _entries(live: Document | None, message: Message | None, api_version: str, now: str) -> list[Entry]:
    """Return the entries. If an object has none, all of its fields count as an earlier update."""
    entries = managed_fields.stored(live)
    if live is None or entries:
        return entries
    fields = compare(None, manageable(live), message).written
    return [Entry(_BEFORE_FIRST_APPLY, UPDATE, api_version, "", fields, now)]


# Conflicts.


def _check_conflicts(others: Iterable[Entry], written: FieldSet) -> None:
    conflicts = [(_described(e), path) for e in others for path in (e.fields & written).paths()]
    if conflicts:
        conflicts.sort()
        causes = [Cause("FieldManagerConflict", f"conflict with {who}", path) for who, path in conflicts]
        raise Conflict(_message(conflicts), causes=causes)


def _message(conflicts: Sequence[tuple[str, str]]) -> str:
    if len(conflicts) == 1:
        who, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {who}: {path}"
    lines: list[str] = []
    for who, group in groupby(conflicts[:MAX_CAUSES], key=itemgetter(0)):
        lines.append(f"conflicts with {who}:")
        lines += [f"- {path}" for _, path in group]
    if len(conflicts) > MAX_CAUSES:
        lines.append(f"and {len(conflicts) - MAX_CAUSES} more")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _described(entry: Entry) -> str:
    name = f'"{entry.manager}"'
    if entry.subresource:
        name += f' with subresource "{entry.subresource}"'
    return f"{name} using {entry.api_version}" if entry.operation == UPDATE else name


# The configuration.


def _check_object(config: Any, api_version: str) -> Message | None:
    if not isinstance(config, dict):
        raise BadRequest("an apply patch must be an object")
    check_depth(config, "the apply patch")
    said, kind = config.get("apiVersion"), config.get("kind")
    if not isinstance(said, str) or not isinstance(kind, str) or not said or not kind:
        raise BadRequest("invalid object type: an apply patch must say apiVersion and kind")
    if said != api_version:
        raise BadRequest(f'the apply patch has apiVersion "{said}", but was sent to "{api_version}"')
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    return message_of(said, kind)


def _checked(topology: Topology, value: Any, path: str) -> Any:
    """Return the configuration, if it fits the kind, without nulls and without merged lists that are empty."""
    if topology.division in _OBJECTS and isinstance(value, dict):
        fields = ((k, _checked_field(topology, k, v, path)) for k, v in value.items() if v is not None)
        return {k: v for k, v in fields if v is not None}
    if topology.division in _LISTS and isinstance(value, list):
        return _checked_list(topology, value, path) or None
    if topology.division in (Division.ATOMIC, Division.UNTYPED):
        return value
    expected = "a list" if topology.division in _LISTS else "an object"
    raise BadRequest(f"{path or 'the apply patch'}: expected {expected}, got {value!r:.80}")


def _checked_field(topology: Topology, name: str, value: Any, path: str) -> Any:
    if not path and name in ("apiVersion", "kind"):
        return value
    below = topology.child(name)
    if below is None:
        raise BadRequest(f"{path}.{name}: field not declared in schema")
    return _checked(below, value, f"{path}.{name}") if below.division is not Division.ATOMIC else value


def _checked_list(topology: Topology, items: list[Any], path: str) -> list[Any]:
    seen = set()
    for index, item in enumerate(items):
        name = topology.name(item)
        if name is None:
            raise BadRequest(f"{path}[{index}]: an element needs at least one of its keys {', '.join(topology.keys)}")
        if name in seen:
            raise BadRequest(f"{path}[{index}]: duplicate entries for {name[2:]}")
        seen.add(name)
    return [_checked(topology.element, item, f"{path}[{index}]") for index, item in enumerate(items)]


# Merging and pruning.


def _merged(topology: Topology, live: Any, config: Any) -> Any:
    if isinstance(live, dict) and isinstance(config, dict) and topology.division in _OBJECTS:
        return {**live, **{k: _merged_field(topology, k, live, v) for k, v in config.items()}}
    if isinstance(live, list) and isinstance(config, list) and topology.division in _LISTS:
        return _merged_list(topology, live, config)
    return config


def _merged_field(topology: Topology, name: str, live: dict[str, Any], value: Any) -> Any:
    below = topology.child(name)
    return value if below is None or name not in live else _merged(below, live[name], value)


def _merged_list(topology: Topology, live: list[Any], config: list[Any]) -> list[Any]:
    """Merge two lists: elements of the configuration in its order, with the others kept at their place among them."""
    wanted = {topology.name(item): item for item in config}
    names = [topology.name(item) for item in live]
    present = dict(zip(reversed(names), reversed(live), strict=True))  # the first element with a name counts
    pending = iter(wanted.items())
    placed: set[str | None] = set()
    result = []
    for name, item in zip(names, live, strict=True):
        if name not in wanted:
            result.append(item)
        while name in wanted and name not in placed:
            following, config_item = next(pending)
            placed.add(following)
            result.append(_merged(topology.element, present.get(following), config_item))
    return result + [_merged(topology.element, present.get(name), item) for name, item in pending]


def _pruned(topology: Topology, merged: Document, last: FieldSet, entries: Iterable[Entry]) -> Document:
    kept = _NAMES
    for entry in entries:
        kept |= entry.fields
    doomed = last.with_parents() - kept.with_parents()
    return _remove(topology, merged, doomed.tree) if doomed else merged


def _remove(topology: Topology, value: Any, doomed: Tree) -> Any:
    """Return the value without the fields in the tree."""
    if isinstance(value, dict) and topology.division in _OBJECTS:
        rests = ((k, _rest(topology.child(k), v, doomed, "f:" + k)) for k, v in value.items())
        return {k: v for k, v in rests if v is not None}
    if isinstance(value, list) and topology.division in _LISTS:
        rest = [_rest(topology.element, item, doomed, topology.name(item)) for item in value]
        return [item for item in rest if item is not None]
    return value


def _rest(topology: Topology | None, value: Any, doomed: Tree, name: str | None) -> Any:
    if name is None or name not in doomed:
        return value
    node = doomed[name]
    if not node or "." in node:
        return None
    return value if topology is None else _remove(topology, value, node)
