"""Report fields that a server dropped from a slice because a feature gate is disabled.

The server does not report them itself. The error names the feature gates to enable.
"""

from collections.abc import Callable, Iterator
from typing import Any

from devlet.errors import DevletError
from devlet.objects.documents import Document
from devlet.objects.validation.attributes import has_lists
from devlet.sdk.slices.comparing import SERVED_CONTENT, same

__all__ = ["DroppedFields", "dropped"]


class DroppedFields(DevletError):
    """The devices are published, but without some of their fields; the administrator has to act. `gates` is empty if
    the reason is not known."""

    def __init__(self, pool: str, index: int, gates: tuple[str, ...], fields: tuple[str, ...]) -> None:
        because = f"probably because these features are disabled: {' '.join(gates) or 'unknown'}"
        named = f" ({', '.join(fields)})" if fields else ""
        text = f'pool "{pool}", slice #{index}: some fields were dropped by the apiserver, {because}{named}'
        super().__init__(text)
        self.pool = pool
        self.index = index
        self.gates = gates
        self.fields = fields


def dropped(pool: str, index: int, sent: Document, stored: Document) -> DroppedFields | None:
    """Compare two specs. Return an error if the server dropped fields, else None."""
    if same(sent, stored, SERVED_CONTENT):
        return None
    gates = tuple(gate for gate, was in _GATES.items() if was(sent, stored))
    return DroppedFields(pool, index, gates, tuple(sorted(set(_fields(sent, stored)))))


def _fields(sent: Document, stored: Document) -> Iterator[str]:
    yield from (member for member in SERVED_CONTENT if member != "devices" and _lost(sent, stored, member))
    for mine, theirs in _pairs(sent, stored):
        yield from (f"devices[].{member}" for member in mine if not _kept(mine, theirs, member))


def _kept(sent: Document, stored: Document, member: str) -> bool:
    return same({"devices": [{member: sent[member]}]}, {"devices": [{member: stored.get(member)}]})


def _pairs(sent: Document, stored: Document) -> Iterator[tuple[Document, Document]]:
    return zip(sent.get("devices") or (), stored.get("devices") or (), strict=False)


def _lost(sent: Document, stored: Document, member: str) -> bool:
    return _size(sent.get(member)) > _size(stored.get(member))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else int(bool(value))


def _in_devices(*members: str) -> Callable[[Document, Document], bool]:
    def was(sent: Document, stored: Document) -> bool:
        return any(_lost(mine, theirs, member) for mine, theirs in _pairs(sent, stored) for member in members)

    return was


def _partitions(sent: Document, stored: Document) -> bool:
    members = ("perDeviceNodeSelection", "sharedCounters")
    return any(_lost(sent, stored, each) for each in members) or _in_devices("consumesCounters")(sent, stored)


def _lists(sent: Document, stored: Document) -> bool:
    pairs = _pairs(sent, stored)
    return any(has_lists(a.get("attributes") or {}) and not has_lists(b.get("attributes") or {}) for a, b in pairs)


_GATES: dict[str, Callable[[Document, Document], bool]] = {
    "DRADeviceTaints": _in_devices("taints"),
    "DRAPartitionableDevices": _partitions,
    "DRADeviceBindingConditions": _in_devices("bindingConditions", "bindingFailureConditions"),
    "DRAConsumableCapacity": _in_devices("allowMultipleAllocations"),
    "DRANodeAllocatableResources": _in_devices("nodeAllocatableResourceMappings"),
    "DRAListTypeAttributes": _lists,
}
