"""The store's side of guarded writes: the options of `served_store` that plain options do not have."""

from dataclasses import replace

from devlet.cluster.client import DeleteOptions, WriteOptions
from devlet.cluster.served_store import Guard, GuardedDelete, GuardedWrite, Run
from devlet.objects.documents import Document


def check(options: WriteOptions | DeleteOptions, new: Document | None, old: Document | None) -> None:
    """Call the guard, if there is one, and raise what it raises."""
    if isinstance(options, GuardedWrite | GuardedDelete):
        options.guard(new, old)


def runner(options: WriteOptions) -> Run | None:
    return options.run if isinstance(options, GuardedWrite) else None


def guarded_by(options: WriteOptions, guard: Guard) -> WriteOptions:
    """Return the same options with another guard, if they have one."""
    return replace(options, guard=guard) if isinstance(options, GuardedWrite) else options
