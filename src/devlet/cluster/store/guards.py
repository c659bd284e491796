"""Options of the embedded cluster that the port does not have: somebody who may refuse a write after seeing it.

The HTTP face uses them for rules about who may write what, which need the object as it would be stored."""

from collections.abc import Callable
from dataclasses import dataclass

from devlet.cluster.client import DeleteOptions, WriteOptions
from devlet.objects.documents import Document

# Is given the new object (None: it is deleted) and the stored one (None: there is none), in the storage version.
Guard = Callable[[Document | None, Document | None], None]


def allow(new: Document | None, old: Document | None) -> None:
    """The guard that lets everything pass."""


@dataclass(frozen=True, slots=True)
class GuardedWrite(WriteOptions):
    guard: Guard = allow


@dataclass(frozen=True, slots=True)
class GuardedDelete(DeleteOptions):
    guard: Guard = allow


def check(options: WriteOptions | DeleteOptions, new: Document | None, old: Document | None) -> None:
    """Raises what the guard raises."""
    if isinstance(options, GuardedWrite | GuardedDelete):
        options.guard(new, old)
