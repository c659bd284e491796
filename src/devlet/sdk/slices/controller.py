"""Keep a driver's slices in the cluster as the driver wants them.

    publisher = SlicePublisher(cluster, "gpu.example.com", "node-1", report, clock)
    async with running(publisher.run):
        publisher.publish({"node-1": Pool([Device("gpu-0")])})
        await publisher.published()

`publish` never waits, because the cluster may be unreachable. Errors are passed to `report`, with what was being done.
Temporary errors, including missing permissions, are retried. Slices that the server refuses as invalid are not retried
until the pools change, another client changes the slices, or `look_again` is called. Slices that another client deleted
or changed are restored after a delay.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskStatus
from msgspec import Struct
from msgspec.structs import replace

from devlet.cluster.client import Cluster
from devlet.cluster.informer import Changed, Informer
from devlet.errors import DevletError, Forbidden, InvalidInput, NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock
from devlet.kit.parts import running
from devlet.kit.work_queue import WorkQueue
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES
from devlet.objects.selectors.fields import escape
from devlet.sdk.slices import taint_times
from devlet.sdk.slices.comparing import content
from devlet.sdk.slices.dropped import dropped
from devlet.sdk.slices.own_writes import OwnWrites
from devlet.sdk.slices.planning import Author, Plan, Write, plan
from devlet.sdk.slices.resources import WantedPool, wanted
from devlet.sdk.slices.served_slices import ServedSlices, pool_of
from devlet.sdk.slices.taint_times import Times
from devlet.sdk.values import Pool

__all__ = ["Report", "Settings", "SlicePublisher", "Statistics"]

Report = Callable[[Exception, str], None]

_SHOWN = 10  # unknown fields in one report
_PROCESSING = "processing ResourceSlice objects"


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    sync_delay: float = 30.0  # before changes of other clients are undone
    own_writes: float = 60.0  # for which the watch may lag behind our writes
    retry: Backoff = field(default=Backoff(0.05, 60.0))


class Statistics(Struct):
    """Counts of the writes so far."""

    creates: int = 0
    updates: int = 0
    deletes: int = 0


class _Refusal(Struct):
    """The server refused these slices of a pool, or their deletion (None). Not retried while the refusal stands."""

    of: WantedPool | None
    text: str
    stands: bool = True


class SlicePublisher:
    """Publishes the pools of one driver. `owner` is the node that has the devices; its slices are deleted with it.

    Without an owner, each pool selects its nodes. With `single_pool` there is only the pool of that name, which also
    selects its nodes; its `owner` is a node whose devices other nodes can use as well."""

    def __init__(
        self,
        cluster: Cluster,
        driver: str,
        owner: str | None,
        report: Report,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        single_pool: str = "",
    ) -> None:
        self._cluster = cluster
        self._driver = driver
        self._owner = owner or ""
        self._node = "" if single_pool else self._owner
        self._single_pool = single_pool
        self._report = report
        self._clock = clock
        self._settings = settings
        selector = f"spec.driver={escape(driver)},spec.nodeName={escape(self._node)}"
        self._slices = ServedSlices(cluster, selector, single_pool)
        self._informer: Informer[Document] | None = None
        self._queue: WorkQueue[str] = WorkQueue(
            self._sync, clock, workers=1, backoff=settings.retry, failed=lambda *_: None
        )
        self._uid = ""
        self._wanted: Mapping[str, WantedPool] | None = None
        self._version = 0  # of `_wanted`
        self._pending: dict[str, int] = {}  # pools, and the version that is neither written nor reported
        self._settled = Changes()
        self._is_cut_off = False  # from the cluster, and this was reported
        self._own = OwnWrites(settings.own_writes)
        self._created: dict[str, float] = {}  # pools, and when a slice was created, until it was checked again
        self._doubtful: set[str] = set()  # pools with a failed write that may have been done nevertheless
        self._unknown: set[str] = set()  # fields that were reported
        self._failures: dict[str, str] = {}  # pools, and their last reported error
        self._refusals: dict[str, _Refusal] = {}
        self._adopted: dict[tuple[str, int], tuple[Document, Document]] = {}  # what was wanted, and what was stored
        self._times: dict[str, Times] = {}
        self.statistics = Statistics()

    def publish(self, pools: Mapping[str, Pool]) -> None:
        """Publish exactly these pools from now on. If they are not valid, report that and change nothing."""
        try:
            self._check_names(pools)
            new = wanted(pools, self._driver, self._node)
        except InvalidInput as e:
            return self._report(e, "pools not published")
        self._report_unknown(new)
        before = self._known_pools() if self._wanted is None else self._wanted
        self._wanted = new
        self._version += 1
        for pool in dict.fromkeys([*before, *new]):
            self._pending[pool] = self._version
            self._queue.add(pool)

    @property
    def devices(self) -> frozenset[tuple[str, str]] | None:
        """The pools and names of the devices to publish; None before the first call of `publish`."""
        if self._wanted is None:
            return None
        contents = [(pool, each) for pool, wanted in self._wanted.items() for each in wanted.slices]
        return frozenset((pool, device["name"]) for pool, each in contents for device in each.get("devices", ()))

    def look_again(self) -> None:
        """Undo changes of other clients at once, and retry what the server refused: its reason may be gone."""
        for refusal in self._refusals.values():
            refusal.stands = False
        for pool in dict.fromkeys([*(self._wanted or ()), *self._refusals]):
            self._queue.add(pool)

    async def published(self) -> None:
        """Wait until the pools are in the cluster, or the reason why not was reported."""
        await self._settled.until(lambda: self._is_cut_off or not self._pending)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled. Ready at once, even if the cluster does not answer. The slices stay."""
        task_status.started()
        await self._find()
        informer = self._slices.informer(self._clock)
        informer.on_change(self._changed)
        async with running(informer.run):
            self._informer = informer
            await self._queue.run()

    async def _find(self) -> None:
        reported = ""
        for pause in self._settings.retry.delays(random.random):
            try:
                await self._slices.find()
                self._is_cut_off = False
                return
            except DevletError as e:
                if str(e) != reported:
                    self._report(e, "looking for ResourceSlice objects")
                reported = str(e)
            self._is_cut_off = True
            self._settled.notify()
            await self._clock.sleep(pause)

    def _check_names(self, pools: Mapping[str, Pool]) -> None:
        if self._single_pool and pools and list(pools) != [self._single_pool]:
            found = ", ".join(pools)
            raise InvalidInput(f"only pool {self._single_pool} may be published (`single_pool`), but not {found}")

    def _known_pools(self) -> list[str]:
        return [pool_of(each) for each in self._informer.all() if each] if self._informer else []

    def _report_unknown(self, pools: Mapping[str, WantedPool]) -> None:
        """Report unknown fields, which may be misspelled: they have no effect, and no server reports them."""
        found = [each for pool in pools.values() for each in pool.unknown]
        new = [each for each in found if each not in self._unknown]
        self._unknown = set(found)
        if new:
            more = f"; and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
            self._report(
                InvalidInput(f"unknown fields: {'; '.join(new[:_SHOWN])}{more}"), "pools published as they are"
            )

    # Triggers

    def _changed(self, change: Changed[Document]) -> None:
        pools = {pool_of(document): None for document in (change.old, change.new) if document}
        is_foreign = not self._own.is_own(change) if pools else False
        for pool in pools:
            self._queue.add_after(pool, self._settings.sync_delay)
            if is_foreign and pool in self._refusals:
                self._refusals[pool].stands = False
        if is_foreign and change.new is None:
            self._uid = ""  # its owner may have been deleted and created again

    def _remind(self, pool: str, started: float) -> None:
        """Check the pool again when its own writes expire: a new slice that was deleted unseen is missed only then."""
        if (created := self._created.get(pool)) is None:
            return
        due = created + self._settings.own_writes
        if started >= due:
            del self._created[pool]
        else:
            self._queue.add_after(pool, due - self._clock.monotonic())

    def _settle(self, pool: str, version: int) -> None:
        if self._pending.get(pool, math.inf) <= version:
            del self._pending[pool]
        if not self._pending:
            self._settled.notify()

    # One pool

    async def _sync(self, pool: str) -> None:
        if self._wanted is None:
            return
        version, started, new = self._version, self._clock.monotonic(), self._wanted.get(pool)
        try:
            if not self._is_refused(pool, new):
                await self._write(pool, new)
                self._refusals.pop(pool, None)
        except InvalidInput as e:
            self._refuse(pool, new, e)
        except Exception as e:
            self._doubtful.add(pool)
            self._report_failure(pool, e)
            self._settle(pool, version)
            raise
        else:
            self._failures.pop(pool, None)
        self._settle(pool, version)
        self._remind(pool, started)

    def _report_failure(self, pool: str, error: Exception) -> None:
        """Report an error once, however often the write is retried. The text of a Forbidden error does not count: it
        has the name of the slice, which is different each time."""
        text = "forbidden" if isinstance(error, Forbidden) else str(error)
        if self._failures.get(pool) != text:
            self._report(error, _PROCESSING)
        self._failures[pool] = text

    def _is_refused(self, pool: str, new: WantedPool | None) -> bool:
        refusal = self._refusals.get(pool)
        return refusal is not None and refusal.of == new and refusal.stands

    def _refuse(self, pool: str, new: WantedPool | None, error: InvalidInput) -> None:
        before = self._refusals.get(pool)
        self._refusals[pool] = _Refusal(new, str(error))
        if before is None or (before.of, before.text) != (new, str(error)):
            self._report(error, _PROCESSING)

    async def _write(self, pool: str, new: WantedPool | None) -> None:
        actual = await self._actual(pool)
        if new is None:
            self._times.pop(pool, None)
            return await self._carry_out(pool, Plan(0, actual))
        times = {**taint_times.of_slices(actual), **self._times.get(pool, {})}
        adapted = self._adapted(new, times)
        await self._carry_out(pool, plan(adapted, actual, await self._author()), new)
        times = {**taint_times.of_slices(self._known(pool)), **times}
        devices = [device for each in adapted.slices for device in each.get("devices", ())]
        self._times[pool] = taint_times.kept(devices, times)

    async def _carry_out(self, pool: str, todo: Plan, new: WantedPool | None = None) -> None:
        for document in todo.deletes:
            await self._delete(document)
        for write in todo.updates:
            self._stored(new, write, await self._slices.update(write.document))
            self.statistics.updates += 1
        for write in todo.creates:
            self._stored(new, write, await self._slices.create(write.document))
            self._created[pool] = self._clock.monotonic()
            self.statistics.creates += 1

    async def _delete(self, document: Document) -> None:
        try:
            await self._slices.delete(document)
            self.statistics.deletes += 1
        except NotFound:
            pass
        self._own.deleted(document, self._clock.monotonic())

    def _stored(self, new: WantedPool | None, write: Write, document: Document) -> None:
        """Accept what the server stored, even if it dropped fields: otherwise it would be updated for ever."""
        self._own.stored(document, self._clock.monotonic())
        if new is None:
            return
        if error := dropped(new.name, write.index, write.document["spec"], document["spec"]):
            self._adopted[new.name, write.index] = new.slices[write.index], content(document["spec"])
            self._report(error, "storing ResourceSlice objects")

    # What there is

    async def _actual(self, pool: str) -> list[Document]:
        """Return the slices of a pool. After a failed write, read them: the write may have been done nevertheless."""
        if pool not in self._doubtful:
            return self._known(pool)
        found = [document for document in await self._slices.list() if pool_of(document) == pool]
        self._own.replaced(pool, found, self._clock.monotonic())
        self._doubtful.discard(pool)
        return found

    def _known(self, pool: str) -> list[Document]:
        seen = self._informer.by_index("pool", pool) if self._informer else []
        return self._own.overlaid(pool, seen, self._clock.monotonic())

    def _adapted(self, new: WantedPool, times: Times) -> WantedPool:
        """Adapt a pool to what the server can store, and add the times of taints that exist already."""
        slices = [self._adopted_or(new.name, index, each) for index, each in enumerate(new.slices)]
        timed = [{**s, "devices": taint_times.filled(s["devices"], times)} if s.get("devices") else s for s in slices]
        return replace(new, slices=tuple(timed))

    def _adopted_or(self, pool: str, index: int, new: Document) -> Document:
        asked, stored = self._adopted.get((pool, index), (None, new))
        if asked == new:
            return stored
        self._adopted.pop((pool, index), None)
        return new

    async def _author(self) -> Author:
        if self._owner and not self._uid:
            self._uid = await self._find_owner()
        return Author(self._driver, self._owner, self._uid, self._node)

    async def _find_owner(self) -> str:
        try:
            return str((await self._cluster.get(NODES, self._owner))["metadata"]["uid"])
        except NotFound as e:
            raise NotFound(f"node {self._owner} does not exist: check --node-name or NODE_NAME") from e
