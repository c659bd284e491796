"""Kinds of pods that are known to be unschedulable, and why, as long as nothing relevant changes.

When a device becomes free, hundreds of equal pods may be retried. The result of the first applies to all of them.
"""

from collections.abc import Hashable

from devlet.control.scheduler.nodes import NodeTable
from devlet.control.scheduler.subject import Subject

__all__ = ["UnschedulableKinds", "kind_of"]


class UnschedulableKinds:
    """`version` is a number that grows with every change that may affect the result. A new version empties the
    cache."""

    def __init__(self) -> None:
        self._reasons: dict[Hashable, str] = {}
        self._version = -1

    def add(self, kind: Hashable, version: int, reason: str = "") -> None:
        self._clear_unless(version)
        self._reasons[kind] = reason

    def has(self, kind: Hashable, version: int) -> bool:
        self._clear_unless(version)
        return kind in self._reasons

    def reason(self, kind: Hashable, version: int) -> str:
        """Return why pods of this kind are unschedulable; empty if that is unknown."""
        self._clear_unless(version)
        return self._reasons.get(kind, "")

    def _clear_unless(self, version: int) -> None:
        if version != self._version:
            self._version = version
            self._reasons.clear()


def kind_of(subject: Subject, nodes: NodeTable, arrivals: int) -> Hashable:
    """Return a value that is equal for pods that fit on the same nodes.

    `arrivals` counts the changes of placed pods: each may satisfy the affinity terms of another pod."""
    affinity = subject.needs.affinity
    if not nodes.is_affected_by_placed_pods(affinity):
        return subject.kind
    return subject.kind, affinity.key, arrivals if affinity.affinity else 0
