"""Sets of fields: the parts of an object that a manager owns, or in which two objects differ.

The representation is FieldsV1 itself, a tree whose keys are path elements: `f:NAME` is a field, `k:{…}` the list
element with these keys, `v:VALUE` a member of a set, `i:N` an index. A node that is an empty object belongs to the set.
So does a node with the key `.`, in addition to what is below it. All other nodes only lead to their children.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.patches.limits import MAX_DEPTH
from devlet.objects.patches.topology import Topology, of
from devlet.objects.schema.messages import Message

Tree = Mapping[str, Any]  # not modified once it is part of a set

_SELF = "."
_encode = msgspec.json.Encoder(order="sorted").encode
_INDEX = re.compile(r"i:-?[0-9]{1,18}")


class FieldSet(Struct, frozen=True):
    """A set of fields. `tree` is normalized: `.` occurs only beside other keys, and no branch is without members.

    Operations that remove fields return the set itself if there is nothing to remove.
    """

    tree: Tree

    def __bool__(self) -> bool:
        return bool(self.tree)

    def __or__(self, other: "FieldSet") -> "FieldSet":
        if not self.tree or not other.tree:
            return self if self.tree else other
        return FieldSet(_union(self.tree, other.tree))

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        return self._or_self(_difference(self.tree, other.tree)) if self._meets(other) else self

    def __and__(self, other: "FieldSet") -> "FieldSet":
        return FieldSet(_intersection(self.tree, other.tree))

    def without_below(self, other: "FieldSet") -> "FieldSet":
        """Return the set without the other's members and everything below them."""
        return self._or_self(_prune(self.tree, other.tree)) if self._meets(other) else self

    def _meets(self, other: "FieldSet") -> bool:
        return not self.tree.keys().isdisjoint(other.tree)

    def _or_self(self, tree: Tree) -> "FieldSet":
        return self if tree == self.tree else FieldSet(tree)

    def covers(self, other: "FieldSet") -> bool:
        return not other - self

    def with_parents(self) -> "FieldSet":
        """Return the set with every field that has a member below it. List elements are not added: an element belongs
        to the manager that added it to the list, not to a manager that changed something in it."""
        return FieldSet(_with_parents(self.tree))

    def paths(self) -> Iterator[str]:
        """Yield all members as readable paths, in order: `.spec.containers[name="a"].image`."""
        return _paths(self.tree, "")

    def format(self) -> Document:
        """Return the set as FieldsV1, in a stable order."""
        return _sorted(self.tree)


EMPTY = FieldSet({})


class Comparison(Struct, frozen=True):
    """The differences of two objects. Members of `removed` are gone together with everything below them."""

    written: FieldSet
    removed: FieldSet

    def __bool__(self) -> bool:
        return bool(self.written) or bool(self.removed)


def parse(fields_v1: Any) -> FieldSet:
    tree = _parse(fields_v1, MAX_DEPTH)
    return FieldSet({key: node for key, node in tree.items() if key != _SELF})


def field_set(document: Document, message: Message | None) -> FieldSet:
    """Return all fields that the document sets. An object with fields is itself a member only if it is an element of a
    list or has a free key: setting `data.a` does not claim `data`."""
    return FieldSet(_members(of(message), document) or {})


def compare(old: Document | None, new: Document, message: Message | None) -> Comparison:
    """Compare two objects. A new object below a field is a member, and so are the fields in it."""
    # A write usually changes only a few of an object's fields.
    written, removed = _compare_fields(of(message), old or {}, new, as_a_whole=True)
    return Comparison(FieldSet(written or {}), FieldSet(removed or {}))


def changed(old: Document | None, new: Document, message: Message | None) -> FieldSet:
    """Return all paths that were added, modified or removed."""
    comparison = compare(old, new, message)
    return comparison.written | comparison.removed


# Trees. A root is never a member itself. Below it, these functions take and return nodes; None is an empty node.


def _node(member: bool, below: dict[str, Any]) -> Tree | None:
    if not below:
        return {} if member else None
    return {_SELF: {}, **below} if member else below


def _is_member(node: Tree) -> bool:
    return not node or _SELF in node


def _union(one: Tree, other: Tree) -> dict[str, Any]:
    result = {k: v for k, v in one.items() if k != _SELF}
    for key, node in other.items():
        if key != _SELF:
            result[key] = _union_node(result[key], node) if key in result else node
    return result


def _union_node(one: Tree, other: Tree) -> Tree:
    return _node(_is_member(one) or _is_member(other), _union(one, other)) or {}


def _difference(one: Tree, other: Tree) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, node in one.items():
        if key == _SELF:
            continue
        kept = _difference_node(node, other[key]) if key in other else node
        if kept is not None:
            result[key] = kept
    return result


def _difference_node(one: Tree, other: Tree) -> Tree | None:
    return _node(_is_member(one) and not _is_member(other), _difference(one, other))


def _intersection(one: Tree, other: Tree) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, node in one.items():
        if key == _SELF or key not in other:
            continue
        member = _is_member(node) and _is_member(other[key])
        if (kept := _node(member, _intersection(node, other[key]))) is not None:
            result[key] = kept
    return result


def _prune(one: Tree, other: Tree) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, node in one.items():
        if key == _SELF:
            continue
        if key not in other:
            result[key] = node
        elif not _is_member(other[key]):
            kept = _node(_is_member(node), _prune(node, other[key]))
            if kept is not None:
                result[key] = kept
    return result


def _with_parents(tree: Tree) -> dict[str, Any]:
    return {
        key: _node(_is_member(node) or key.startswith("f:"), _with_parents(node)) or {}
        for key, node in tree.items()
        if key != _SELF
    }


def _sorted(tree: Tree) -> Document:
    return {key: _sorted(node) if (node := tree[key]) else {} for key in sorted(tree)}


# FieldsV1 from outside.


def _parse(raw: Any, depth: int) -> Tree:
    if not isinstance(raw, dict):
        raise BadRequest(f"fieldsV1: expected an object, got {raw!r:.80}")
    if depth <= 0:
        raise BadRequest(f"fieldsV1 is nested more than {MAX_DEPTH} levels deep")
    tree: dict[str, Any] = {}
    for key, below in raw.items():
        if key != _SELF:
            tree[_path_element(key)] = _parse(below, depth - 1)
    return {_SELF: {}, **tree} if tree and _SELF in raw else tree


def _path_element(text: str) -> str:
    kind = text[:2]
    if kind == "f:" or _INDEX.fullmatch(text):
        return text
    if kind in ("k:", "v:"):
        try:
            value = msgspec.json.decode(text[2:])
        except (msgspec.DecodeError, RecursionError):
            value = None
        if kind == "v:" or (isinstance(value, dict) and value):
            return kind + _encode(value).decode()
    raise BadRequest(f"fieldsV1: {text!r:.80} is not a path element")


def _paths(tree: Tree, prefix: str) -> Iterator[str]:
    for key in sorted(tree):
        if key == _SELF:
            continue
        path = prefix + _readable(key)
        if _is_member(tree[key]):
            yield path
        yield from _paths(tree[key], path)


def _readable(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return "." + rest
    if kind == "k:":
        keys = msgspec.json.decode(rest)
        return "[" + ",".join(f"{k}={_encode(v).decode()}" for k, v in sorted(keys.items())) + "]"
    return f"[={rest}]" if kind == "v:" else f"[{rest}]"


# From documents.


def _members(topology: Topology, value: Any) -> Tree | None:
    """Return the node of a value; None for an empty list to which others may add elements."""
    parts = topology.split(value) if isinstance(value, (dict, list)) else None
    if not parts:
        return {} if parts is None or isinstance(value, dict) else None
    result: dict[str, Any] = {}
    for key, (below, part) in parts.items():
        node = _members(below, part)
        if node is not None:
            free = key[0] != "f" or not topology.is_field(key[2:])
            result[key] = (_node(True, dict(node)) or {}) if free else node
    return result or None


def _compare(topology: Topology, old: Any, new: Any) -> tuple[Tree | None, Tree | None]:
    """Return what was written and what was removed at and below a value that both objects have."""
    if old is new:
        return None, None
    if topology.has_fields and isinstance(old, dict) and isinstance(new, dict):
        return _compare_fields(topology, old, new)
    if old == new:
        return None, None
    before, after = topology.split(old), topology.split(new)
    if before is None or after is None:
        return _added(topology, new, implicit=False), {key: {} for key in before} if before else None
    written: dict[str, Any] = {}
    removed: dict[str, Any] = {key: {} for key in before if key not in after}
    for key, (below, value) in after.items():
        if key in before:
            changed, gone = _compare(below, before[key][1], value)
            if gone is not None:
                removed[key] = gone
        else:
            changed = _added(below, value, implicit=below.implicit)
        if changed is not None:
            written[key] = changed
    return written or None, removed or None


def _compare_fields(
    topology: Topology, old: Document, new: Document, *, as_a_whole: bool = False
) -> tuple[Tree | None, Tree | None]:
    """Compare fields like `_compare`. Fields that are objects are compared `as_a_whole` first only on request:
    otherwise a long list would be compared again on every level."""
    written: dict[str, Any] = {}
    removed: dict[str, Any] = {}
    for key, value in new.items():
        before = old.get(key)
        if value is None or value is before or (as_a_whole and value == before):
            continue
        below = topology.below(key)
        if before is None:
            changed = _added(below, value, implicit=below.implicit)
        else:
            changed, gone = _compare(below, before, value)
            if gone is not None:
                removed["f:" + key] = gone
        if changed is not None:
            written["f:" + key] = changed
    for key, before in old.items():
        if before is not None and new.get(key) is None:
            removed["f:" + key] = {}
    return written or None, removed or None


def _added(topology: Topology, value: Any, *, implicit: bool) -> Tree | None:
    result: dict[str, Any] = {}
    if isinstance(value, dict) and topology.splits_objects:
        for name, part in value.items():
            if isinstance(part, (dict, list)):
                below = topology.below(name)
                node = _added(below, part, implicit=implicit and below.implicit)
                if node is not None:
                    result["f:" + name] = node
            elif part is not None:
                result["f:" + name] = {}
    elif (parts := topology.split(value)) is not None:
        for key, (below, part) in parts.items():
            node = _added(below, part, implicit=implicit and below.implicit)
            if node is not None:
                result[key] = node
    else:
        return {}
    return _node(not implicit, result)
