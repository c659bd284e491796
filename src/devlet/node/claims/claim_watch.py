"""Wake the pods that wait for a claim when it is created, allocated, reserved or deleted.

A pod is woken at most once for each state of a claim, even if it stops waiting and starts again. So a pod that retries
whenever it is woken does not loop. The first state that is seen also wakes the pod, because the pod may have read an
older one.

Watches need more permissions than a node has by default. If the cluster refuses them, claims are polled instead. So are
claims beyond the maximum number of open watches.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup, TaskStatus

from devlet.cluster.client import Cluster, EventType, ListOptions, WatchOptions
from devlet.errors import DevletError, Expired, Forbidden, NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.node.claims.records import ClaimKey
from devlet.node.served import Served
from devlet.objects.documents import Document
from devlet.objects.identifiers import PodUID
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.selectors.fields import escape

__all__ = ["ClaimWatch", "Settings"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    watches: int = 256  # open at the same time; further claims are polled
    poll: float = 5.0  # between two polls of a claim
    polls: int = 8  # polls under way at the same time
    pause: float = 1.0  # before a watch that ended is opened again
    refused: float = 300.0  # after a refusal, until watches are tried again
    retry: Backoff = field(default=Backoff(1.0, 30.0))
    remembered: int = 4096  # pods that no longer wait, and the states that they were woken for


class _State(NamedTuple):
    """A state of a claim, which can be compared. Both fields are empty if there is no such claim."""

    uid: str
    version: str


_ABSENT = _State("", "")


class _Follower:
    """Follows one claim as long as pods wait for it."""

    def __init__(self) -> None:
        self.pods: set[PodUID] = set()
        self.scope = anyio.CancelScope()
        self.state: _State | None = None  # None until the claim has been seen


class ClaimWatch:
    """`wake` is called on the event loop and must not block. If a pod is woken while it is being prepared, it has to be
    prepared once more."""

    def __init__(
        self, cluster: Cluster, wake: Callable[[PodUID], None], clock: Clock, settings: Settings = Settings()
    ) -> None:
        self._cluster = cluster
        self._wake = wake
        self._clock = clock
        self._settings = settings
        self._claims = Served(RESOURCE_CLAIMS.kind)
        self._waits: dict[PodUID, frozenset[ClaimKey]] = {}
        self._followers: dict[ClaimKey, _Follower] = {}
        self._woken_for: OrderedDict[PodUID, dict[ClaimKey, _State]] = OrderedDict()
        self._limiter = anyio.CapacityLimiter(settings.polls)
        self._open = 0  # watches
        self._refused_until = 0.0
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            for key, follower in self._followers.items():
                tasks.start_soon(self._follow, key, follower)
            self._tasks = tasks
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._tasks = None

    @property
    def watched(self) -> int:
        """Return the number of open watches."""
        return self._open

    def watch(self, pod: PodUID, claims: Collection[ClaimKey]) -> None:
        """Wake the pod for changes of these claims, and no longer for others. Does not block. If a claim already has a
        state that the pod was not woken for, wake it now."""
        before, wanted = self._waits.pop(pod, frozenset()), frozenset(claims)
        if wanted:
            self._waits[pod] = wanted
        for key in before - wanted:
            self._leave(pod, key)
        for key in wanted - before:
            self._join(pod, key)
        self._forget()

    def _join(self, pod: PodUID, key: ClaimKey) -> None:
        follower = self._followers.get(key)
        if follower is None:
            follower = self._followers[key] = _Follower()
            if self._tasks is not None:
                self._tasks.start_soon(self._follow, key, follower)
        follower.pods.add(pod)
        if follower.state is not None:
            self._wake_for(pod, key, follower.state)

    def _leave(self, pod: PodUID, key: ClaimKey) -> None:
        follower = self._followers[key]
        follower.pods.discard(pod)
        if not follower.pods:
            del self._followers[key]
            follower.scope.cancel()

    def _forget(self) -> None:
        """Forget the pods that were woken longest ago. One that still waits is at worst woken again."""
        while len(self._woken_for) > self._settings.remembered + len(self._waits):
            self._woken_for.popitem(last=False)

    def _wake_for(self, pod: PodUID, key: ClaimKey, state: _State) -> None:
        states = self._woken_for.setdefault(pod, {})
        self._woken_for.move_to_end(pod)
        if states.get(key) != state:
            states[key] = state
            self._wake(pod)

    def _update(self, key: ClaimKey, follower: _Follower, state: _State) -> None:
        follower.state = state
        for pod in sorted(follower.pods):
            self._wake_for(pod, key, state)

    async def _follow(self, key: ClaimKey, follower: _Follower) -> None:
        failures = 0
        with follower.scope:
            while True:
                try:
                    await self._once(key, follower)
                    failures = 0
                except Expired:
                    await self._clock.sleep(self._settings.pause)
                except DevletError as e:
                    log.debug("claim not watched", extra=facts(claim=key, err=e))
                    await self._clock.sleep(self._settings.retry.delay(failures, random.random))
                    failures += 1

    async def _once(self, key: ClaimKey, follower: _Follower) -> None:
        """Watch until the watch ends, or poll once. Then wait until it is time for the next round."""
        if not self._may_watch():
            await self._poll(key, follower)
            return await self._clock.sleep(self._settings.poll)
        try:
            with self._slot():
                await self._watch(key, follower)
        except Forbidden as e:
            if self._may_watch():
                log.info("claims cannot be watched and are polled instead", extra=facts(err=e))
            self._refused_until = self._clock.monotonic() + self._settings.refused
        else:
            await self._clock.sleep(self._settings.pause)

    def _may_watch(self) -> bool:
        return self._open < self._settings.watches and self._clock.monotonic() >= self._refused_until

    @contextmanager
    def _slot(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def _watch(self, key: ClaimKey, follower: _Follower) -> None:
        fields = f"metadata.name={escape(key.name)}"
        selected = ListOptions(field_selector=fields)
        page = await self._claims.ask(lambda claims: self._cluster.list(claims, key.namespace, selected))
        self._update(key, follower, _state(page.items[0]) if page.items else _ABSENT)
        options = WatchOptions(field_selector=fields, resource_version=page.resource_version)
        async with self._cluster.watch(self._claims.resource, key.namespace, options) as events:
            async for event in events:
                if event.type is not EventType.BOOKMARK:
                    gone = event.type is EventType.DELETED
                    self._update(key, follower, _ABSENT if gone else _state(event.object))

    async def _poll(self, key: ClaimKey, follower: _Follower) -> None:
        try:
            async with self._limiter:
                claim = await self._claims.ask(lambda claims: self._cluster.get(claims, key.name, key.namespace))
        except NotFound as e:
            if not e.name:
                raise
            self._update(key, follower, _ABSENT)
        else:
            self._update(key, follower, _state(claim))


def _state(document: Document) -> _State:
    metadata = document.get("metadata") or {}
    return _State(metadata.get("uid", ""), metadata.get("resourceVersion", ""))
