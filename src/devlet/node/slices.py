"""Deletes the ResourceSlices of drivers on this node that cannot be used, so that their devices are not allocated.

Nothing is deleted at once. A driver that is back within the delay keeps its slices, so the cluster does not lose all
its devices and get them back. This also holds when devlet starts and no driver has registered yet. The slices of a
driver that never registered here are left alone if they appear later.

As soon as a driver is gone, an annotation on the Node (`objects.node_drivers`) says so to schedulers.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from devlet.cluster.client import Cluster, ListOptions
from devlet.cluster.informer import Changed, Informer
from devlet.errors import DevletError, Forbidden, NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.parts import running
from devlet.node.served import Served
from devlet.objects.documents import Document
from devlet.objects.identifiers import DriverName, NodeName
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.objects.names import driver_name
from devlet.objects.node_drivers import ANNOTATION, NodeDriver, decode, encode
from devlet.objects.values.timestamps import format_time
from devlet.plugins.dra import DriverRecord

__all__ = ["Drivers", "Settings", "SliceKeeper", "plan"]

log = logging.getLogger(__name__)

_NONE = DriverName("")


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    delay: float = 30.0  # that a driver may be unusable before its slices are deleted
    retry: Backoff = field(default=Backoff(1.0, 300.0, jitter=0.2))
    look: Backoff = field(default=Backoff(0.8, 30.0))  # between failed attempts to list the slices
    remembered: int = 4096  # drivers that are gone with all their slices, and may publish again
    announced: int = 64  # drivers in the Node's annotation
    announced_for: float = 86_400.0  # how long a driver is in the annotation after it is gone with all its slices


class Drivers(Protocol):
    """The registered drivers. `version` grows when one registers, deregisters, is connected or is lost."""

    @property
    def version(self) -> int: ...

    async def changed(self, since: int, /) -> int: ...

    def is_usable(self, name: DriverName, /) -> bool: ...

    def records(self) -> Sequence[DriverRecord]: ...


def plan(
    known: Collection[DriverName],
    is_usable: Callable[[DriverName], bool],
    wiped: Collection[DriverName],
    with_slices: Collection[DriverName],
) -> frozenset[DriverName]:
    """Return the drivers whose slices must be deleted.

    `wiped` are those whose slices were deleted since they were last usable: nothing is left to do for them unless
    slices appear again. Whether other drivers have slices does not matter, because the view of the cluster may be
    stale."""
    return frozenset(d for d in known if not is_usable(d) and (d not in wiped or d in with_slices))


@dataclass(frozen=True, slots=True, eq=False)
class _Wipe:
    due: float  # by the clock's `monotonic`; it does not change
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class _DriverNames:
    """The drivers that have registered on this node, and what the annotation on the Node says about them."""

    def __init__(self, drivers: Drivers, clock: Clock, settings: Settings) -> None:
        self._drivers = drivers
        self._clock = clock
        self._settings = settings
        self._known: dict[DriverName, None] = {}  # in the order in which they came
        self._gone: dict[DriverName, str] = {}  # since when, as a timestamp
        self._is_new = True

    def __iter__(self) -> Iterator[DriverName]:
        return iter(self._known)

    def add(self, drivers: Collection[DriverName]) -> None:
        """Add those that have a valid name: it becomes part of a selector."""
        self._known |= dict.fromkeys(driver for driver in sorted(drivers) if driver and not driver_name(driver))

    def forget(self, drivers: Collection[DriverName]) -> None:
        """Forget the oldest of these drivers, which are gone with all their slices, if there are too many."""
        idle = [driver for driver in self._known if driver in drivers]
        for driver in idle[: max(0, len(idle) - self._settings.remembered)]:
            del self._known[driver]

    def note_gone(self) -> None:
        """Keep the time at which each driver was first seen to be unusable."""
        now = format_time(self._clock.now())
        self._gone = {each: self._gone.get(each, now) for each in self._known if not self._drivers.is_usable(each)}

    def annotations(self, before: Mapping[str, str], with_slices: Collection[DriverName]) -> dict[str, str]:
        """Return the annotation for the Node, given those that it has.

        When devlet starts, no driver has registered yet. The drivers in the annotation of the previous run therefore
        count as gone until they register again."""
        if self._is_new:
            self._is_new = False
            left = decode(before.get(ANNOTATION, ""))
            self.add([each.name for each in left])
            self._gone |= {each.name: each.gone_since for each in left if each.gone_since}
        self.note_gone()
        found = self._announced(with_slices)
        return {ANNOTATION: encode(found)} if found or ANNOTATION in before else {}

    def _announced(self, with_slices: Collection[DriverName]) -> list[NodeDriver]:
        """Return the drivers that are usable, and the latest ones that are gone."""
        registered = {record.driver: record.registered for record in reversed(self._drivers.records())}
        usable = [driver for driver in self._known if driver not in self._gone]
        oldest = format_time(self._clock.now() - timedelta(seconds=self._settings.announced_for))
        found = [NodeDriver(each, registered_since=format_time(registered[each])) for each in usable]
        found += [
            NodeDriver(driver, gone_since=since)
            for driver, since in self._gone.items()
            if since >= oldest or driver in with_slices
        ]
        return sorted(found, key=lambda each: each.gone_since or "~")[-self._settings.announced :]


class SliceKeeper:
    """`on_change` is called when the annotation may have changed; it must not block."""

    def __init__(
        self,
        cluster: Cluster,
        node_name: NodeName,
        drivers: Drivers,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_change = on_change
        self._cluster = cluster
        self._of_node = f"spec.nodeName={node_name}"
        self._drivers = drivers
        self._clock = clock
        self._settings = settings
        self._slices = Served(RESOURCE_SLICES.kind)
        self._counts: Counter[DriverName] = Counter()  # of slices that are there and not being deleted
        self._names = _DriverNames(drivers, clock, settings)
        self._wiped: set[DriverName] = set()
        self._pending: dict[DriverName, _Wipe] = {}
        self._changes = Changes()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ready at once: no other part depends on what may be deleted later."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_drivers)
            tasks.start_soon(self._follow_slices)
            task_status.started()
            while True:
                seen = self._changes.version
                self._decide(tasks)
                await self._changes.after(seen)

    def records(self) -> dict[DriverName, datetime]:
        """Return when the slices of each driver will be deleted. If the time has passed, deleting them has failed."""
        now, since = self._clock.now(), self._clock.monotonic()
        return {driver: now + timedelta(seconds=wipe.due - since) for driver, wipe in sorted(self._pending.items())}

    def annotations(self, before: Mapping[str, str]) -> dict[str, str]:
        """Return the annotation for the Node, given those that it has."""
        return self._names.annotations(before, self._counts)

    def _decide(self, tasks: TaskGroup) -> None:
        registered = frozenset(record.driver for record in self._drivers.records())
        self._names.add(registered)
        self._names.forget(self._wiped.difference(self._counts, registered))
        self._names.note_gone()
        self._on_change()
        self._wiped = {driver for driver in self._wiped if not self._drivers.is_usable(driver)}
        wanted = plan(frozenset(self._names), self._drivers.is_usable, self._wiped, self._counts)
        for driver in self._pending.keys() - wanted:
            self._pending.pop(driver).scope.cancel()
        for driver in sorted(wanted - self._pending.keys()):
            wipe = self._pending[driver] = _Wipe(self._clock.monotonic() + self._settings.delay)
            tasks.start_soon(self._wipe, driver, wipe)

    async def _wipe(self, driver: DriverName, wipe: _Wipe) -> None:
        with wipe.scope:
            await self._clock.sleep(wipe.due - self._clock.monotonic())
            for pause in self._settings.retry.delays(random.random):
                if self._drivers.is_usable(driver) or await self._deleted(driver):
                    break
                await self._clock.sleep(pause)
            if self._pending.get(driver) is wipe:  # otherwise it was cancelled just as it finished
                del self._pending[driver]
            self._changes.notify()

    async def _deleted(self, driver: DriverName) -> bool:
        """Return True if the slices were deleted or there were none."""
        selected = ListOptions(field_selector=f"{self._of_node},spec.driver={driver}")
        try:
            gone = await self._slices.ask(lambda slices: self._cluster.delete_collection(slices, select=selected))
        except NotFound:
            log.debug("no slices to delete", extra=facts(driver=driver))
        except DevletError as e:
            level = logging.DEBUG if isinstance(e, Forbidden) else logging.WARNING
            log.log(level, "slices not deleted", extra=facts(driver=driver, err=e))
            return False
        else:
            log.info("slices of an unusable driver deleted", extra=facts(driver=driver, count=len(gone.items)))
        self._wiped.add(driver)
        return True

    async def _follow_drivers(self) -> None:
        version = self._drivers.version
        while True:
            self._changes.notify()
            version = await self._drivers.changed(version)

    async def _follow_slices(self) -> None:
        await self._find_version()
        informer = Informer(
            self._cluster, self._slices.resource, _driver, field_selector=self._of_node, backoff=self._settings.look
        )
        async with running(informer.run), informer.changes() as changes:
            self._names.add(frozenset(informer.all()))
            async for change in changes:
                self._count(change)

    async def _find_version(self) -> None:
        """Find an API version that the server has. A watch alone would not try other versions."""
        one = ListOptions(field_selector=self._of_node, limit=1)
        for pause in self._settings.look.delays(random.random):
            try:
                await self._slices.ask(lambda slices: self._cluster.list(slices, options=one))
                return
            except DevletError as e:
                log.debug("slices of this node not listed", extra=facts(err=e))
                await self._clock.sleep(pause)

    def _count(self, change: Changed[DriverName]) -> None:
        before = self._counts.keys() & {change.old, change.new}
        self._counts.subtract([change.old] if change.old else [])
        self._counts.update([change.new] if change.new else [])
        self._counts = +self._counts
        if before != self._counts.keys() & {change.old, change.new}:
            self._changes.notify()


def _driver(document: Document) -> DriverName:
    """Return the driver of a slice, or an empty name if the slice is being deleted."""
    if document["metadata"].get("deletionTimestamp"):
        return _NONE
    return DriverName((document.get("spec") or {}).get("driver") or "")
