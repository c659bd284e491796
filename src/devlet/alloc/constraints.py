"""Constraints of a claim: devices must share a value of an attribute, or must all have different values.

An attribute is treated as a set of values; a scalar is a set of one. Each value carries its type, so 1 and "1" differ.
Devices are added and removed last in, first out. The two `Reference…` constraints depend on which devices were tried
before; they exist to reproduce the reference's answers.
"""

from collections.abc import Hashable, Iterable
from typing import Any, Final, Protocol

from devlet.alloc.inventory import DeviceEntry, Values
from devlet.objects.types.claim import DeviceConstraint
from devlet.objects.types.slice import DeviceAttribute

__all__ = ["Constraint", "Distinct", "Match", "attribute_values", "make_constraint"]


ATTRIBUTES_MAX: Final = 64


def attribute_values(entry: DeviceEntry, name: str, *, lists: bool) -> Values | None:
    """Return the values of an attribute by its full name, or None if the device does not have it. Unknown types have no
    values."""
    key = (name, lists)
    if key not in entry.attributes:
        if len(entry.attributes) >= ATTRIBUTES_MAX:
            entry.attributes.clear()  # names come from claims, so the cache must not grow without limit
        entry.attributes[key] = _look_up(entry, name, lists)
    return entry.attributes[key]


def _look_up(entry: DeviceEntry, name: str, lists: bool) -> Values | None:
    attributes = entry.device.attributes
    attribute = attributes.get(name)
    if attribute is None:
        domain, _, id = name.partition("/")
        attribute = attributes.get(id) if domain == entry.identity.driver else None
    return None if attribute is None else _values(attribute, lists)


def _values(attribute: DeviceAttribute, lists: bool) -> Values:
    if lists:
        for kind in ("ints", "bools", "strings", "versions"):
            if elements := getattr(attribute, kind):
                return frozenset((kind, element) for element in elements)
    for kind, value in (
        ("ints", attribute.int_),
        ("bools", attribute.bool_),
        ("strings", attribute.string),
        ("versions", attribute.version),
    ):
        if value is not None:
            return frozenset([(kind, value)])
    return frozenset()


class Constraint(Protocol):
    requests: frozenset[str]
    attribute: str

    def covers(self, request: str, full_name: str) -> bool: ...
    def add(self, entry: DeviceEntry, request: str) -> bool: ...
    def remove(self, entry: DeviceEntry, request: str) -> None: ...
    def state(self) -> Hashable: ...
    def reset(self, state: Any) -> None:
        """Return to an earlier state. Only constraints whose state depends on earlier attempts need this."""

    def values(self, entry: DeviceEntry) -> Values | None: ...
    def restores(self, entries: Iterable[DeviceEntry], largest: int) -> bool:
        """Return whether removing a device always restores the state before it was added, provided that only these
        devices are added and no request wants more than `largest`."""


class _Attribute:
    def __init__(self, attribute: str, requests: frozenset[str], lists: bool) -> None:
        self.attribute = attribute
        self.requests = requests
        self.lists = lists

    def covers(self, request: str, full_name: str) -> bool:
        """Return whether the constraint applies to devices of the request, or of one of its alternatives."""
        return not self.requests or request in self.requests or full_name in self.requests

    def restores(self, _entries: Iterable[DeviceEntry], _largest: int) -> bool:
        return True

    def reset(self, _state: Any) -> None:
        """Do nothing: removing a device already restored the state."""

    def values(self, entry: DeviceEntry) -> Values | None:
        return attribute_values(entry, self.attribute, lists=self.lists)


class Match(_Attribute):
    """Requires that all devices have a value in common."""

    def __init__(self, attribute: str, requests: frozenset[str], lists: bool) -> None:
        super().__init__(attribute, requests, lists)
        self._common: list[Values] = []

    def add(self, entry: DeviceEntry, _request: str) -> bool:
        values = self.values(entry)
        common = values & self._common[-1] if values and self._common else values
        if not common:
            return False
        self._common.append(common)
        return True

    def remove(self, _entry: DeviceEntry, _request: str) -> None:
        self._common.pop()

    def state(self) -> Hashable:
        return self._common[-1] if self._common else None


class Distinct(_Attribute):
    """Requires that no two devices have a value in common."""

    def __init__(self, attribute: str, requests: frozenset[str], lists: bool) -> None:
        super().__init__(attribute, requests, lists)
        self._seen: set[tuple[str, object]] = set()

    def add(self, entry: DeviceEntry, _request: str) -> bool:
        values = self.values(entry)
        if not values or not self._seen.isdisjoint(values):
            return False
        self._seen |= values
        return True

    def remove(self, entry: DeviceEntry, _request: str) -> None:
        self._seen -= self.values(entry) or frozenset()

    def state(self) -> Hashable:
        return frozenset(self._seen)


class ReferenceMatch(_Attribute):
    """Like Match, except that values which the intersection lost stay lost when a device is removed."""

    def __init__(self, attribute: str, requests: frozenset[str], lists: bool) -> None:
        super().__init__(attribute, requests, lists)
        self._common: Values = frozenset()
        self._count = 0

    def add(self, entry: DeviceEntry, _request: str) -> bool:
        values = self.values(entry)
        if values is None or (self.lists and not values):
            return False
        if self._count:
            if not self._common & values:
                return False
            values &= self._common
        self._common = values
        self._count += 1
        return True

    def remove(self, _entry: DeviceEntry, _request: str) -> None:
        self._count -= 1

    def state(self) -> Hashable:
        return (self._common, self._count) if self._count else (frozenset(), 0)

    def reset(self, state: tuple[Values, int]) -> None:
        self._common, self._count = state

    def restores(self, entries: Iterable[DeviceEntry], _largest: int) -> bool:
        return not self.lists or all(len(self.values(entry) or ()) <= 1 for entry in entries)


class ReferenceDistinct(_Attribute):
    """Remembers one device per request, and forgets it when any device of the request is removed."""

    def __init__(self, attribute: str, requests: frozenset[str], lists: bool) -> None:
        super().__init__(attribute, requests, lists)
        self._seen: dict[str, Values] = {}
        self._count = 0

    def add(self, entry: DeviceEntry, request: str) -> bool:
        values = self.values(entry)
        if values is None:
            return False
        if self._count and not self._differs(values):
            return False
        self._seen[request] = values
        self._count += 1
        return True

    def _differs(self, values: Values) -> bool:
        if not values:
            return not (self.lists or self._seen)
        return all(values.isdisjoint(seen) for seen in self._seen.values())

    def remove(self, _entry: DeviceEntry, request: str) -> None:
        self._seen.pop(request, None)
        self._count -= 1

    def restores(self, _entries: Iterable[DeviceEntry], largest: int) -> bool:
        return largest <= 1

    def state(self) -> Hashable:
        return (frozenset(self._seen.items()), self._count)

    def reset(self, state: tuple[frozenset[tuple[str, Values]], int]) -> None:
        self._seen, self._count = dict(state[0]), state[1]


def make_constraint(constraint: DeviceConstraint, *, exact: bool, lists: bool) -> Constraint | None:
    """Return the constraint, or None if its kind is unknown."""
    requests = frozenset(constraint.requests)
    if constraint.match_attribute is not None:
        return (Match if exact else ReferenceMatch)(constraint.match_attribute, requests, lists)
    if constraint.distinct_attribute is not None:
        return (Distinct if exact else ReferenceDistinct)(constraint.distinct_attribute, requests, lists)
    return None
