"""Wakes pods that wait for a claim when the claim changes: is made, allocated, reserved, deleted.

A pod is woken for each state of a claim at most once, also if it stops waiting and starts again: whoever tries again
with each wake does not run in circles. In return the first state that is seen wakes too, because nobody knows whether
the pod has read it or an older one.

Watches need more rights than a node has by default. A cluster that refuses them is asked for the claim instead, again
and again; so it is for claims beyond the number of watches that are held at once.
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

    watches: int = 256  # at once; further claims are asked for
    poll: float = 5.0  # between two times that a claim is asked for
    polls: int = 8  # questions at once
    pause: float = 1.0  # before a watch that ended begins again
    refused: float = 300.0  # after a refusal, until watches are tried again
    retry: Backoff = field(default=Backoff(1.0, 30.0))
    remembered: int = 4096  # pods that no longer wait, of which it is known what they were woken for


class _State(NamedTuple):
    """Two of a claim that are equal are the same state. Both empty: there is no such claim."""

    uid: str
    version: str


_ABSENT = _State("", "")


class _Follower:
    """Of one claim, as long as pods wait for it."""

    def __init__(self) -> None:
        self.pods: set[PodUID] = set()
        self.scope = anyio.CancelScope()
        self.state: _State | None = None  # nothing is known yet


class ClaimWatch:
    """`wake` is called on the event loop and returns at once. What it is told counts until the pod has tried again: a
    wake during a try asks for another."""

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
        self._told: OrderedDict[PodUID, dict[ClaimKey, _State]] = OrderedDict()
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
        """How many watches are open."""
        return self._open

    def watch(self, pod: PodUID, claims: Collection[ClaimKey]) -> None:
        """Wake the pod for these claims, instead of those before; for none, if there are none. Returns at once. If more
        is known of a claim than the pod was woken for, it is woken right here."""
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
            self._tell(pod, key, follower.state)

    def _leave(self, pod: PodUID, key: ClaimKey) -> None:
        follower = self._followers[key]
        follower.pods.discard(pod)
        if not follower.pods:
            del self._followers[key]
            follower.scope.cancel()

    def _forget(self) -> None:
        """The oldest of those who were told something. One that still waits is only told again."""
        while len(self._told) > self._settings.remembered + len(self._waits):
            self._told.popitem(last=False)

    def _tell(self, pod: PodUID, key: ClaimKey, state: _State) -> None:
        told = self._told.setdefault(pod, {})
        self._told.move_to_end(pod)
        if told.get(key) != state:
            told[key] = state
            self._wake(pod)

    def _saw(self, key: ClaimKey, follower: _Follower, state: _State) -> None:
        follower.state = state
        for pod in sorted(follower.pods):
            self._tell(pod, key, state)

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
        """Watch until the watch ends, or ask once; and wait until it is time for the next."""
        if not self._may_watch():
            await self._ask(key, follower)
            return await self._clock.sleep(self._settings.poll)
        try:
            with self._slot():
                await self._watch(key, follower)
        except Forbidden as e:
            if self._may_watch():
                log.info("claims cannot be watched and are asked for instead", extra=facts(err=e))
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
        self._saw(key, follower, _state(page.items[0]) if page.items else _ABSENT)
        options = WatchOptions(field_selector=fields, resource_version=page.resource_version)
        async with self._cluster.watch(self._claims.resource, key.namespace, options) as events:
            async for event in events:
                if event.type is not EventType.BOOKMARK:
                    gone = event.type is EventType.DELETED
                    self._saw(key, follower, _ABSENT if gone else _state(event.object))

    async def _ask(self, key: ClaimKey, follower: _Follower) -> None:
        try:
            async with self._limiter:
                claim = await self._claims.ask(lambda claims: self._cluster.get(claims, key.name, key.namespace))
        except NotFound as e:
            if not e.name:
                raise
            self._saw(key, follower, _ABSENT)
        else:
            self._saw(key, follower, _state(claim))


def _state(document: Document) -> _State:
    metadata = document.get("metadata") or {}
    return _State(metadata.get("uid", ""), metadata.get("resourceVersion", ""))
