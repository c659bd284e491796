"""Plan the writes that turn the slices of a pool into those that its driver wants.

A scheduler uses the slices of a pool's newest generation, and only if all of them exist. So a change of several slices
starts a new generation: until the last slice is written the pool is incomplete, but never half old and half new. A
change of one slice is complete by itself, so it keeps the generation.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sdk.slices import names
from devlet.sdk.slices.comparing import CONTENT, same
from devlet.sdk.slices.resources import WantedPool

__all__ = ["Author", "Plan", "Write", "generation_of", "plan"]


class Author(Struct, frozen=True):
    """The publisher. `owner` is a node, with its UID. `node_name` is set if the devices are on that node only."""

    driver: str
    owner: str = ""
    uid: str = ""
    node_name: str = ""


class Write(Struct, frozen=True):
    index: int
    document: Document


class Plan(Struct, frozen=True):
    """The writes, in this order: it is better to offer too few devices than devices that no longer exist."""

    generation: int
    deletes: Sequence[Document] = ()
    updates: Sequence[Write] = ()
    creates: Sequence[Write] = ()


def plan(wanted: WantedPool, actual: Iterable[Document], author: Author) -> Plan:
    """Plan the writes for a pool. `actual` has all its present slices."""
    actual = sorted(actual, key=lambda each: str(each["metadata"]["name"]))
    newest = max(map(generation_of, actual), default=0)
    count = len(wanted.slices)
    current = _current(actual, newest, count)
    kept = {document["metadata"]["name"] for document in current.values()}
    missing = [index for index in range(count) if index not in current]
    before = _pool(wanted, newest)
    changed = {i for i, each in current.items() if _differs(each["spec"], wanted.slices[i], before)}
    generation = _generation(wanted.generation, newest, bool(missing) or len(changed) > 1)
    if generation != newest:
        changed = set(current)
    pool = _pool(wanted, generation)
    return Plan(
        generation,
        [each for each in actual if each["metadata"]["name"] not in kept],
        [Write(i, _updated(current[i], wanted.slices[i], pool)) for i in sorted(changed)],
        [Write(i, _created(i, wanted.slices[i], pool, author)) for i in missing],
    )


def generation_of(document: Document) -> int:
    return int(document["spec"]["pool"].get("generation") or 0)


def _current(actual: Iterable[Document], newest: int, count: int) -> Mapping[int, Document]:
    """Return the valid slices by index. Others are obsolete: of an older generation, surplus, or with another name."""
    found: dict[int, Document] = {}
    for document in actual:
        index = names.decode(document["metadata"]["name"], count)
        if generation_of(document) == newest and index is not None:
            found.setdefault(index, document)
    return found


def _generation(asked: int, newest: int, is_big: bool) -> int:
    if asked > newest:
        return asked
    return newest + 1 if is_big else newest


def _pool(wanted: WantedPool, generation: int) -> Document:
    return {"name": wanted.name, "generation": generation, "resourceSliceCount": len(wanted.slices)}


def _differs(spec: Document, wanted: Document, pool: Document) -> bool:
    return any(spec["pool"].get(member) != value for member, value in pool.items()) or not same(spec, wanted)


def _updated(document: Document, wanted: Document, pool: Document) -> Document:
    rest = {member: value for member, value in document["spec"].items() if member not in CONTENT}
    return {**document, "spec": {**rest, "pool": pool, **wanted}}


def _created(index: int, wanted: Document, pool: Document, author: Author) -> Document:
    name = names.generated(index, pool["resourceSliceCount"], author.driver, author.owner)
    metadata: Document = {"generateName": name}
    if author.owner:
        owner = {"apiVersion": "v1", "kind": "Node", "name": author.owner, "uid": author.uid, "controller": True}
        metadata["ownerReferences"] = [owner]
    where = {"nodeName": author.node_name} if author.node_name else {}
    spec = {"driver": author.driver, "pool": pool, **where, **wanted}
    resource = RESOURCE_SLICES
    return {"apiVersion": resource.api_version, "kind": resource.kind.kind, "metadata": metadata, "spec": spec}
