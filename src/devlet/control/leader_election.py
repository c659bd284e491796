"""Leader election: of several processes one leads, with a lease that is held and renewed as client-go does it.

Clocks of different machines are never compared. The lease of another process has expired when it has not changed for
its duration by our own clock. Ours has expired when `renew_deadline` has passed since the last successful renewal was
*sent*. The first time is longer than the second, so a leader has stopped before another one starts:

    leader      |- renewal sent ---------- deadline: part cancelled, writes refused
    candidate      |- renewal seen --------------------------------- duration: may take it
"""

import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster
from devlet.control.fenced_cluster import FencedCluster
from devlet.errors import AlreadyExists, Conflict, DevletError, InvalidInput, NotFound, Unavailable
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.documents import Document
from devlet.objects.kinds import LEASES
from devlet.objects.values.timestamps import format_micro_time

__all__ = ["LeaderElection", "Settings", "unique_identity"]

log = logging.getLogger(__name__)

Part = Callable[[Cluster], Awaitable[None]]

# An API server creates these itself, a moment after it starts to serve.
_SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True)
class Settings:
    """Times are in seconds; the first three are those of client-go."""

    duration: float = 15.0  # without a change, until another process may take the lease
    renew_deadline: float = 10.0  # without a renewal, until the leader stops
    retry: float = 2.0  # between two attempts
    jitter: float = 1.2  # of `retry`: the most that a candidate adds at random between two attempts
    release: float = 1.0  # for releasing the lease at the end
    namespace: str = "kube-system"

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew_deadline < self.duration:
            raise InvalidInput("leader election: expected retry < renew deadline < lease duration")


@dataclass(frozen=True, slots=True)
class _Moment:
    monotonic: float
    wall: datetime


@dataclass(slots=True)
class _Observed:
    """The lease as it was last seen. After a deletion `document` is None, and `spec` is that of the deleted lease."""

    changed_at: float  # when the spec became what it is
    document: Document | None = None
    spec: Document = field(default_factory=dict)
    missing_since: float | None = None  # when a lease that existed was not found any more

    @property
    def holder(self) -> str:
        return self.spec.get("holderIdentity") or ""


def unique_identity(host: str) -> str:
    """Return an identity for one process: two processes on one host must not mistake each other's lease for their
    own."""
    return f"{host}_{uuid4()}"


class LeaderElection:
    """`identity` must be unique to this process. `changed` is called with each new leader, or "" if there is none."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        name: str,
        identity: str,
        settings: Settings = Settings(),
        *,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._name = name
        self._identity = identity
        self._settings = settings
        self._changed = changed
        self._lease = _Observed(clock.monotonic())
        self._renewed: _Moment | None = None  # when the last successful renewal was sent, while we hold the lease
        self._reported: str | None = None  # the leader that `changed` was called with
        self._refusal: InvalidInput | None = None  # of the last attempt

    @property
    def leading(self) -> bool:
        """True if this process may write at this moment."""
        return self._renewed is not None and self._since(self._renewed) < self._settings.renew_deadline

    @property
    def holder(self) -> str:
        """The holder of the lease when it was last seen."""
        return self._lease.holder

    async def lead(self, part: Part, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the part whenever this process leads, until it ends by itself. It writes through the cluster that it
        gets.

        When the lease is lost, the part is cancelled; it is run again when the lease is acquired again. Ready as soon
        as the leader is known. Raises InvalidInput if the lease can never be acquired, unless it was before."""
        ready = False
        while True:
            answered = await self._try()
            if self._refusal is not None and not ready:
                raise self._refusal
            if answered and not ready:
                task_status.started()
                ready = True
            if not self.leading:
                await self._clock.sleep(self._settings.retry * (1 + self._settings.jitter * random.random()))
            elif await self._held(part):
                return

    async def _held(self, part: Part) -> bool:
        """Run the part while the lease is held. Return True if it ended by itself."""
        ended = False

        async def work() -> None:
            nonlocal ended
            await part(FencedCluster(self._cluster, self._check))
            ended = True
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._cancel_in_time, tasks.cancel_scope)
                tasks.start_soon(self._keep, tasks.cancel_scope)
                tasks.start_soon(work)
            if not ended:
                self._lose()
        except BaseException:
            await self._release()
            raise
        if ended:
            await self._release()
        return ended

    def _check(self) -> None:
        if not self.leading:
            raise Unavailable(f"lease {self._settings.namespace}/{self._name} is no longer held: the write was refused")

    async def _cancel_in_time(self, scope: anyio.CancelScope) -> None:
        while self._renewed is not None and self.leading:
            await self._clock.sleep(self._settings.renew_deadline - self._since(self._renewed))
        scope.cancel()

    async def _keep(self, scope: anyio.CancelScope) -> None:
        while True:
            await self._clock.sleep(self._settings.retry)
            await self._try()
            if self.holder != self._identity:
                return scope.cancel()

    def _lose(self) -> None:
        log.warning("lease lost", extra=facts(lease=self._name, holder=self.holder))
        self._renewed = None
        self._report()

    # One attempt

    async def _try(self) -> bool:
        """Acquire or renew the lease if possible. Return True if the cluster has answered."""
        answered = False

        async def attempt() -> None:
            nonlocal answered
            answered = await self._attempt()

        await self._within(self._settings.renew_deadline / 2, attempt)
        return answered

    async def _attempt(self) -> bool:
        self._refusal = None
        try:
            if not self.leading:
                await self._read()
            if self._is_free():
                await self._write()
        except (Conflict, AlreadyExists, NotFound):
            return await self._after_conflict()
        except DevletError as e:
            return self._failed("lease not renewed" if self.leading else "lease not acquired", e)
        self._report()
        return True

    async def _after_conflict(self) -> bool:
        """Read the lease. Another process wrote it, or we did and the answer was lost."""
        try:
            await self._read()
            if self.holder == self._identity and self._renewed is not None:
                await self._write()
        except DevletError as e:
            return self._failed("lease not read", e)
        self._report()
        return True

    def _failed(self, what: str, error: DevletError) -> bool:
        log.warning(what, extra=facts(lease=self._name, err=error))
        self._refusal = error if isinstance(error, InvalidInput) else None
        return False

    async def _read(self) -> None:
        lease = self._lease
        try:
            self._observe(await self._cluster.get(LEASES, self._name, self._settings.namespace))
        except NotFound:
            if lease.document is not None:
                lease.missing_since = self._clock.monotonic()
            lease.document = None

    def _observe(self, document: Document) -> None:
        lease, spec = self._lease, document.get("spec") or {}
        if lease.document is None or spec != lease.spec:
            lease.changed_at = self._clock.monotonic()
        lease.document, lease.spec, lease.missing_since = document, spec, None
        if self.holder != self._identity:
            self._renewed = None

    def _is_free(self) -> bool:
        """Return True if the lease may be written. A deleted lease is not free at once: another process may have
        acquired it before the deletion, after we read it last."""
        lease, now = self._lease, self._clock.monotonic()
        if lease.missing_since is not None and not self.leading:
            return now - lease.missing_since >= self._settings.duration
        if self.holder in ("", self._identity):
            return True
        return now - lease.changed_at >= (lease.spec.get("leaseDurationSeconds") or self._settings.duration)

    async def _write(self) -> None:
        sent, spec, document = self._moment(), self._wanted(), self._lease.document
        if document is None:
            answer = await self._create(spec)
        else:
            answer = await self._cluster.update(LEASES, document | {"spec": spec})
        self._observe(answer)
        self._renewed = sent

    async def _create(self, spec: Document) -> Document:
        space = self._settings.namespace
        try:
            metadata = {"name": self._name, "namespace": space}
            return await self._cluster.create(LEASES, {"metadata": metadata, "spec": spec}, space)
        except NotFound as e:
            text = (
                f"lease {space}/{self._name} cannot be created: {e}; "
                "create the namespace, or choose another one with --lease-namespace"
            )
            raise Unavailable(text) if space in _SYSTEM_NAMESPACES else InvalidInput(text) from e

    def _wanted(self) -> Document:
        now, before = format_micro_time(self._clock.now()), self._lease.spec
        spec = before | {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._settings.duration),  # rounded up, because others rely on it
            "renewTime": now,
        }
        if self.holder == self._identity:
            return spec
        changes = (before.get("leaseTransitions") or 0) + 1 if before else 0
        return spec | {"acquireTime": now, "leaseTransitions": changes}

    def _report(self) -> None:
        leader = self.holder
        if leader == self._identity and self._renewed is None:
            leader = ""  # written by us, but the renewal is not known to be in time
        if leader != self._reported:
            self._reported = leader
            log.info("leader changed", extra=facts(lease=self._name, leader=leader, ours=leader == self._identity))
            self._changed(leader)

    # The end

    async def _release(self) -> None:
        """Release the lease, so that the next leader need not wait for it to expire. Do nothing unless we hold it."""
        document, held = self._lease.document, self.holder == self._identity
        self._renewed = None
        if document is None or not held:
            return
        now = format_micro_time(self._clock.now())
        spec = self._lease.spec | {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": now,
            "acquireTime": now,
        }

        async def release() -> None:
            try:
                self._observe(await self._cluster.update(LEASES, document | {"spec": spec}))
                log.info("lease released", extra=facts(lease=self._name))
            except DevletError as e:
                log.info("lease not released", extra=facts(lease=self._name, err=e))

        with anyio.move_on_after(self._settings.release, shield=True):
            await release()

    # Time

    async def _within(self, seconds: float, call: Callable[[], Awaitable[None]]) -> None:
        async def cancel() -> None:
            await self._clock.sleep(seconds)
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            await call()
            tasks.cancel_scope.cancel()

    def _moment(self) -> _Moment:
        return _Moment(self._clock.monotonic(), self._clock.now())

    def _since(self, moment: _Moment) -> float:
        """Return the seconds since a renewal. The monotonic clock stops while the machine sleeps, and the wall clock
        does not: if they disagree, the longer time counts."""
        wall = (self._clock.now() - moment.wall).total_seconds()
        return max(self._clock.monotonic() - moment.monotonic, wall)
