"""Options of the embedded cluster that the port does not have: somebody who may refuse a write after seeing it.

The HTTP face uses them for rules about who may write what, which need the object as it would be stored."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from devlet.cluster.client import DeleteOptions, WriteOptions
from devlet.objects.documents import Document

# Is given the new object (None: it is deleted) and the stored one (None: there is none), in the storage version.
Guard = Callable[[Document | None, Document | None], None]


def allow(new: Document | None, old: Document | None) -> None:
    """The guard that lets everything pass."""


Run = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a computation beside the event loop, and returns its result."""


@dataclass(frozen=True, slots=True)
class GuardedWrite(WriteOptions):
    """`run` prepares objects that take long beside the event loop; None prepares them in the event loop."""

    guard: Guard = allow
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class GuardedDelete(DeleteOptions):
    guard: Guard = allow


def check(options: WriteOptions | DeleteOptions, new: Document | None, old: Document | None) -> None:
    """Raises what the guard raises."""
    if isinstance(options, GuardedWrite | GuardedDelete):
        options.guard(new, old)


def runner(options: WriteOptions) -> Run | None:
    return options.run if isinstance(options, GuardedWrite) else None


def guarded_by(options: WriteOptions, guard: Guard) -> WriteOptions:
    """Return the same options with another guard, if they have one."""
    return replace(options, guard=guard) if isinstance(options, GuardedWrite) else options
