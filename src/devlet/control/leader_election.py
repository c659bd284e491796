"""Several run, one leads: by a lease that is held and renewed as client-go does it, so that both understand it.

No clock of another machine is ever compared. A lease of somebody else has run out when it has not changed for its
duration by our own clock; ours has when `renew_deadline` has passed since the last renewal that succeeded was *sent*.
The first is longer than the second, so whoever leads has stopped before another begins:

    leader      |- renewal sent ---------- deadline: part cancelled, writes refused
    candidate      |- renewal seen --------------------------------- duration: may take it
"""

import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
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

# An API server makes these itself, a moment after it has begun to answer.
_MADE_BY_THE_SERVER = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds; the first three are client-go's."""

    duration: float = 15.0  # without a change, until another may take the lease
    renew_deadline: float = 10.0  # without a renewal, until the leader stops
    retry: float = 2.0  # between two tries
    jitter: float = 1.2  # of `retry`, more, at most, between two looks of one who waits
    release: float = 1.0  # for giving the lease back at the stop
    namespace: str = "kube-system"

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew_deadline < self.duration:
            raise InvalidInput("leader election: expected retry < renew deadline < lease duration")


@dataclass(frozen=True, slots=True)
class _Moment:
    monotonic: float
    wall: datetime


def unique_identity(host: str) -> str:
    """For one process: two that are started with the same name must not take each other's lease for theirs."""
    return f"{host}_{uuid4()}"


class LeaderElection:
    """`identity` must be of this process alone. `changed` is told who leads, when that is somebody else than before;
    "" is nobody."""

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
        self._document: Document | None = None  # the lease, if there is one
        self._spec: Document = {}  # as last seen, also of one that was deleted
        self._seen = clock.monotonic()  # when the spec became that
        self._missed: float | None = None  # since when a lease is not there that was
        self._renewed: _Moment | None = None
        self._told: str | None = None
        self._refusal: InvalidInput | None = None  # of the last try

    @property
    def leading(self) -> bool:
        """Whether we may write, at this very moment."""
        return self._renewed is not None and self._since(self._renewed) < self._settings.renew_deadline

    @property
    def holder(self) -> str:
        """Who had the lease when it was last seen."""
        return self._spec.get("holderIdentity") or ""

    async def lead(self, part: Part, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the part whenever we lead, until it ends by itself. It gets the cluster that it is to write through.
        When the lease is lost the part is cancelled, and a new one is run when we have it again. Ready when it is known
        for the first time who leads. InvalidInput if the lease can never be had, before it ever was."""
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
        """Whether the part ended by itself, and not because the lease was lost."""
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
            raise Unavailable(f"lease {self._settings.namespace}/{self._name} is not held any more: nothing is written")

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
        self._tell()

    # One try

    async def _try(self) -> bool:
        """Take the lease or renew it, if that is possible. Whether the cluster has answered."""
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
                await self._look()
            if self._is_free():
                await self._write()
        except (Conflict, AlreadyExists, NotFound):
            return await self._look_again()
        except DevletError as e:
            return self._failed("lease not renewed" if self.leading else "lease not acquired", e)
        self._tell()
        return True

    async def _look_again(self) -> bool:
        """Somebody else wrote, or we did without hearing of it."""
        try:
            await self._look()
            if self.holder == self._identity and self._renewed is not None:
                await self._write()
        except DevletError as e:
            return self._failed("lease not read", e)
        self._tell()
        return True

    def _failed(self, what: str, error: DevletError) -> bool:
        log.warning(what, extra=facts(lease=self._name, err=error))
        self._refusal = error if isinstance(error, InvalidInput) else None
        return False

    async def _look(self) -> None:
        try:
            self._see(await self._cluster.get(LEASES, self._name, self._settings.namespace))
        except NotFound:
            if self._document is not None:
                self._missed = self._clock.monotonic()
            self._document = None

    def _see(self, lease: Document) -> None:
        spec = lease.get("spec") or {}
        if self._document is None or spec != self._spec:
            self._seen = self._clock.monotonic()
        self._document, self._spec, self._missed = lease, spec, None
        if self.holder != self._identity:
            self._renewed = None

    def _is_free(self) -> bool:
        """Of a lease that was deleted nobody knows who had it last: they may have taken it since we looked, and believe
        that they have it."""
        if self._missed is not None and not self.leading:
            return self._clock.monotonic() - self._missed >= self._settings.duration
        if self.holder in ("", self._identity):
            return True
        duration = self._spec.get("leaseDurationSeconds") or self._settings.duration
        return self._clock.monotonic() - self._seen >= duration

    async def _write(self) -> None:
        sent, spec = self._moment(), self._wanted()
        if self._document is None:
            answer = await self._create(spec)
        else:
            answer = await self._cluster.update(LEASES, self._document | {"spec": spec})
        self._see(answer)
        self._renewed = sent

    async def _create(self, spec: Document) -> Document:
        space = self._settings.namespace
        try:
            metadata = {"name": self._name, "namespace": space}
            return await self._cluster.create(LEASES, {"metadata": metadata, "spec": spec}, space)
        except NotFound as e:
            text = (
                f"lease {space}/{self._name} cannot be made: {e}; "
                "create the namespace, or name another one with --lease-namespace"
            )
            raise Unavailable(text) if space in _MADE_BY_THE_SERVER else InvalidInput(text) from e

    def _wanted(self) -> Document:
        now, before = format_micro_time(self._clock.now()), self._spec
        spec = before | {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._settings.duration),  # others count on it: never less
            "renewTime": now,
        }
        if self.holder == self._identity:
            return spec
        changes = (before.get("leaseTransitions") or 0) + 1 if before else 0
        return spec | {"acquireTime": now, "leaseTransitions": changes}

    def _tell(self) -> None:
        leader = self.holder
        if leader == self._identity and self._renewed is None:
            leader = ""  # ours, but not for long enough to act on it
        if leader != self._told:
            self._told = leader
            log.info("leader changed", extra=facts(lease=self._name, leader=leader, ours=leader == self._identity))
            self._changed(leader)

    # The end

    async def _release(self) -> None:
        """So that another need not wait. What was written last must be ours: otherwise it is somebody's already."""
        document, held = self._document, self.holder == self._identity
        self._renewed = None
        if document is None or not held:
            return
        now = format_micro_time(self._clock.now())
        spec = self._spec | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}

        async def release() -> None:
            try:
                self._see(await self._cluster.update(LEASES, document | {"spec": spec}))
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
        """Of our own lease. The clock that counts durations stands still while the machine sleeps, and the time of day
        does not: if they disagree, more time has passed rather than less."""
        wall = (self._clock.now() - moment.wall).total_seconds()
        return max(self._clock.monotonic() - moment.monotonic, wall)
