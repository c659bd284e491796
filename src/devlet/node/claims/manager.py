"""The claim manager: has the drivers prepare a pod's claims before it starts, and unprepare them after its end.

What is about to happen is on disk before a driver is called, so whatever a crash interrupts is found and undone. Only
one operation at a time works on a claim; operations on different claims do not wait for each other.

    start: lock claims ─▶ read, check ─▶ add references ══ saved ══▶ call drivers ─▶ confirm ══ saved ══▶ containers
    end:   lock claims ─▶ claims of no other pod: call drivers ─▶ delete references ══ saved ══▶ the pod is done

What succeeded is kept if something else fails: the next attempt calls only the missing drivers. A call to a driver is
completed even if its pod is deleted in the meantime; otherwise unprepare could overtake prepare.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from devlet.errors import DevletError, NotPrepared, StateCorrupt, Unavailable
from devlet.kit import request_ids
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.key_locks import KeyLocks
from devlet.node.claims import pod_claims
from devlet.node.claims.claim_info_cache import ClaimInfoCache
from devlet.node.claims.metrics import PREPARE, UNPREPARE
from devlet.node.claims.prepare_context import Drivers, Misplaced, PrepareContext, Read, Settings
from devlet.node.claims.preparing import prepare
from devlet.node.claims.progress import Progress
from devlet.node.claims.records import ClaimKey, ClaimRecord, ContainerClaim, PodWait
from devlet.node.claims.tombstones import Tombstones
from devlet.node.claims.unpreparing import release, unprepare
from devlet.node.reports import Report
from devlet.objects.identifiers import DeviceIdentity, PodUID
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.state import claim_checkpoint
from devlet.state.checkpoint_file import CheckpointFile, GroupSaver
from devlet.state.claim_entry import ClaimEntry
from devlet.state.claim_salvage import salvage

__all__ = ["CHECKPOINT", "ClaimManager", "Drivers", "Settings"]

log = logging.getLogger(__name__)

CHECKPOINT = "dra_manager_state"


class ClaimManager:
    """`read` gets a claim from the cluster, never from a cache. `misplaced` returns why a claim's devices cannot be
    used on this node. `observe` is called after each operation with its name, seconds, and whether it failed. `watch`
    is called with the claims that a pod waits for, `wake` when a waiting pod should try again. The callbacks must not
    block."""

    def __init__(
        self,
        directory: Path,
        drivers: Drivers,
        read: Read,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        file: CheckpointFile | None = None,
        report: Callable[[Report], None] = lambda report: None,
        observe: Callable[[str, float, bool], None] = lambda name, seconds, failed: None,
        watch: Callable[[PodUID, Collection[ClaimKey]], None] = lambda pod, claims: None,
        wake: Callable[[PodUID], None] = lambda pod: None,
        misplaced: Misplaced = lambda claim: "",
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._report = report
        self._observe = observe
        self._watch = watch
        self._wake = wake
        self._cache = ClaimInfoCache()
        self._file = file or CheckpointFile(directory / CHECKPOINT)
        self._saver = GroupSaver(self._file, self._cache.content, clock=clock)
        self._progress = Progress(clock)
        self._context = PrepareContext(
            self._cache, self._saver, drivers, read, self._progress, settings, KeyLocks(), misplaced
        )
        self._drivers = drivers
        self._tombstones = Tombstones(clock)
        self._driver_changes = Changes()
        self.damage: tuple[str, ...] = ()

    @property
    def checkpoint(self) -> GroupSaver:
        return self._saver

    # Life

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled. Ready when the checkpoint is restored. Raise Unavailable if it can be neither read nor
        written."""
        await anyio.to_thread.run_sync(self._file.prepare)
        await self._restore()
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._saver.run)
            await self._saver.save()  # a kubelet also writes a file on a new node
            task_status.started()
            await self._follow_drivers()

    async def _restore(self) -> None:
        blob = await anyio.to_thread.run_sync(self._file.read)
        try:
            self._cache.restore(claim_checkpoint.decode(blob).claims if blob is not None else None)
        except StateCorrupt as e:
            await self._salvage(blob or b"", e)
        aside = await anyio.to_thread.run_sync(self._file.set_aside_files)
        self.damage = tuple(f"{path} was damaged and set aside" for path in aside)
        log.info("claims restored", extra=facts(claims=len(self._cache)))

    async def _salvage(self, blob: bytes, error: StateCorrupt) -> None:
        """Restore what can still be read, which is enough to unprepare it. Running pods have their claims prepared
        again."""
        path = await anyio.to_thread.run_sync(self._file.set_aside, self._clock.now())
        found = await anyio.to_thread.run_sync(salvage, blob)
        self._cache.restore(found.claims, damaged=True)
        lost = f"; lost: {'; '.join(found.lost)}" if found.lost else ""
        message = f"{error}; kept as {path}. {len(found.claims)} claims could be read from it{lost}"
        log.error("checkpoint damaged", extra=facts(path=path, err=error, claims=len(found.claims)))
        self._report(Report("Warning", "ClaimCheckpointDamaged", message))

    @property
    def version(self) -> int:
        """A number that grows with each change of the drivers."""
        return self._driver_changes.version

    async def changed(self, since: int) -> int:
        """Wait until the version is greater than `since`, and return it."""
        return await self._driver_changes.after(since)

    async def _follow_drivers(self) -> None:
        seen = self._drivers.version
        while True:
            seen = await self._drivers.changed(seen)
            self._driver_changes.notify()

    def _wake_waiting(self, claims: Collection[ClaimKey]) -> None:
        for wait in self._progress.waits():
            if not (set(claims).isdisjoint(wait.claims) and wait.holders.isdisjoint(map(str, claims))):
                self._wake(wait.pod)

    # Prepare

    async def prepare(self, pod: Pod) -> None:
        """Prepare all claims of the pod. Idempotent. A DevletError says what is missing; whatever was done until then
        is kept for the next attempt and undone by `unprepare`."""
        keys = pod_claims.keys(pod, extended=self._settings.extended)
        before = {key: self._cache[key] for key in self._cache.claims_of(pod.uid)}
        with self._observed(PREPARE), self._waiting(pod.uid, keys):
            if busy := [key.name for key in keys if self._context.locks.is_held(key)]:
                self._progress.waits_for(
                    pod.uid, keys, f"{', '.join(busy)}: being prepared or unprepared for another pod"
                )
            try:
                await prepare(pod, self._context)
            finally:
                self._wake_waiting([key for key, entry in before.items() if self._is_gone(key, entry)])

    def _is_gone(self, key: ClaimKey, entry: ClaimEntry) -> bool:
        """Return True if the entry was removed, or is now of another claim or without some of its drivers."""
        now = self._cache.get(key)
        return now is None or now.uid != entry.uid or not (entry.drivers or {}).keys() <= (now.drivers or {}).keys()

    # Unprepare

    async def unprepare(self, pod: PodUID) -> None:
        """Delete the pod's references to claims, and unprepare the claims that no other pod uses. Idempotent.
        NotPrepared says what could not be unprepared; the pod keeps its reference to it."""
        self._stop_waiting(pod)
        with self._observed(UNPREPARE):
            await self._unprepare(pod)

    async def _unprepare(self, pod: PodUID) -> None:
        before = {key: self._cache[key] for key in self._cache.claims_of(pod)}
        self._context.ending.add(pod)
        try:
            await unprepare(pod, self._context)
        finally:
            self._note_end(pod, before)

    def _note_end(self, pod: PodUID, before: Mapping[ClaimKey, ClaimEntry]) -> None:
        left = self._cache.claims_of(pod)
        if not left:
            self._context.ending.discard(pod)
        if gone := {key: entry for key, entry in before.items() if key not in left}:
            self._tombstones.add(pod, gone)
        # One driver may have unprepared a claim that the others still have.
        changed = [key for key, entry in before.items() if key in gone or self._is_gone(key, entry)]
        self._wake_waiting(changed)

    async def release(self, key: ClaimKey, *, force: bool) -> None:
        """Unprepare a claim whose pods have ended. With `force`, forget it even if its drivers, which are called once
        more, do not unprepare it. Raise NotFound if the claim is not prepared here; NotPrepared says why it was not
        released."""
        with request_ids.request():
            await release(key, self._context, force=force, report=self._report)
        self._wake_waiting([key])

    async def reconcile(self, keep: Collection[PodUID], spare: Collection[ClaimKey] = ()) -> None:
        """Unprepare the claims of all pods except `keep`: they were deleted while devlet was not running. Claims in
        `spare` are used by pods that are not in the checkpoint yet. A slow driver delays only its own claims."""
        limiters: dict[frozenset[str], anyio.CapacityLimiter] = {}
        problems: list[str] = []

        async def clean(pod: PodUID) -> None:
            drivers = self._drivers_of(pod)
            limiter = limiters.setdefault(drivers, anyio.CapacityLimiter(self._settings.cleanups_at_once))
            try:
                async with limiter:
                    with request_ids.request():
                        await self._unprepare(pod)
            except (NotPrepared, Unavailable) as e:
                problems.append(str(e))
            else:
                log.info("claims of a deleted pod unprepared", extra=facts(podUID=pod))

        async with anyio.create_task_group() as tasks:
            for pod in sorted(self._cache.pods() - frozenset(keep)):
                if self._cache.claims_of(pod).isdisjoint(spare):
                    tasks.start_soon(clean, pod)
        if problems:
            log.warning("claims of deleted pods not unprepared", extra=facts(pods=len(problems), err=problems[0]))

    def _drivers_of(self, pod: PodUID) -> frozenset[str]:
        return frozenset(name for key in self._cache.claims_of(pod) for name in self._cache[key].drivers or {})

    # Reading

    def is_prepared(self, pod: Pod) -> bool:
        """Return True if the pod refers to all of its claims and they were prepared, even before a restart."""
        try:
            claims = pod_claims.of_pod(pod, extended=self._settings.extended)
        except DevletError:
            return False
        return all(self._cache.is_prepared(one.key, pod.uid) for one in claims)

    def holds(self, pod: PodUID) -> bool:
        """Return True if there is something to unprepare for the pod."""
        return bool(self._cache.claims_of(pod))

    def cdi_devices(self, pod: Pod, container: Container) -> tuple[str, ...]:
        """Return the CDI devices of the container, each once and always in the same order. Raise NotPrepared if a claim
        is not prepared."""
        claims = pod_claims.of_pod(pod, extended=self._settings.extended)
        return pod_claims.cdi_devices(pod_claims.container_claims(pod, container, claims, self._cache.get))

    def container_claims(self, pod: Pod, container: Container) -> tuple[ContainerClaim, ...]:
        """Return the claims of the container that are prepared, or were until recently."""
        claims = pod_claims.created(pod, extended=self._settings.extended)
        found = pod_claims.container_claims(pod, container, claims, partial(self._entry, pod.uid))
        return tuple(claim for _, claim in found if claim is not None)

    def _entry(self, pod: PodUID, key: ClaimKey) -> ClaimEntry | None:
        entry = self._cache.get(key)
        return entry if entry and pod in (entry.pods or ()) else self._tombstones.get(pod, key)

    def users(self, devices: Collection[DeviceIdentity]) -> frozenset[PodUID]:
        """Return the pods that have, or had until recently, one of these devices or a share of it."""
        return self._cache.users(devices) | self._tombstones.users(devices)

    def records(self) -> list[ClaimRecord]:
        return [self._progress.record(key, entry) for key, entry in sorted(self._cache, key=lambda pair: pair[0])]

    def waits(self) -> list[PodWait]:
        return self._progress.waits()

    # Observation

    @contextmanager
    def _observed(self, name: str) -> Iterator[None]:
        began, failed = self._clock.monotonic(), True
        try:
            yield
            failed = False
        finally:
            self._observe(name, self._clock.monotonic() - began, failed)

    @contextmanager
    def _waiting(self, pod: PodUID, claims: Sequence[ClaimKey]) -> Iterator[None]:
        try:
            yield
        except DevletError as e:
            error = e if isinstance(e, NotPrepared) else NotPrepared(str(e))
            self._progress.waits_for(pod, claims, str(e), error.drivers, error.contested)
            self._watch(pod, claims)
            raise
        self._stop_waiting(pod)

    def _stop_waiting(self, pod: PodUID) -> None:
        self._progress.forget_pod(pod)
        self._watch(pod, ())
