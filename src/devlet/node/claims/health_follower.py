"""Follows the health streams of all DRA drivers that have one, and tells which pods are concerned by a change.

A change is also that a stream ends, or that a driver has not repeated itself in time. One timer is enough for the
latter: it is set to the next moment at which a health ceases to hold.
"""

import logging
import math
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol

from anyio import TASK_STATUS_IGNORED, CancelScope, Event, create_task_group
from anyio.abc import TaskGroup, TaskStatus

from devlet.errors import PluginError, PluginUnimplemented
from devlet.kit.clock import Clock
from devlet.kit.facts import bound, facts
from devlet.node.claims.health import TIMEOUT, Health, HealthCache, Source
from devlet.node.claims.health_store import HealthStore
from devlet.objects.identifiers import DeviceIdentity, DriverName, PodUID
from devlet.plugins.dra import DeviceReport, HealthService

__all__ = ["HealthFollower", "Instance", "Registry", "Settings"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    retry: float = 5.0  # after the end of a stream
    timeout: float = TIMEOUT  # how long a health holds, if its driver does not say it
    steady: float = 60.0  # once a stream was open for so long, its end is news


class Instance(Protocol):
    """One instance of a driver, as `devlet.plugins.dra_driver` has it."""

    @property
    def name(self) -> DriverName: ...

    @property
    def health_service(self) -> HealthService | None: ...

    def health(self) -> AsyncGenerator[tuple[DeviceReport, ...], None]: ...


class Registry(Protocol):
    """As `devlet.plugins.dra_registry` has it."""

    @property
    def version(self) -> int: ...

    def instances(self) -> Sequence[Instance]: ...

    async def changed(self, since: int) -> int: ...


class HealthFollower:
    """Keeps its file in `directory`. `users` says which pods have one of some devices, and `on_change` hears of those
    pods; it must not wait."""

    def __init__(
        self,
        registry: Registry,
        directory: Path,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        users: Callable[[Collection[DeviceIdentity]], frozenset[PodUID]],
        on_change: Callable[[frozenset[PodUID]], None],
    ) -> None:
        self._registry = registry
        self._store = HealthStore(directory)
        self._clock = clock
        self._settings = settings
        self._users = users
        self._on_change = on_change
        self._cache = HealthCache(settings.timeout)
        self._numbers = count(1)
        self._dirty = Event()
        self._alarm = Event()
        self._due = math.inf  # when the alarm goes off by itself

    def health(self, device: DeviceIdentity) -> Health:
        return self._cache.health(device, self._clock.monotonic())

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Ready when the file is read. Stopping is no end of the streams: what they said last is still in the file
        then."""
        self._cache.restore(await self._store.read(), self._clock.monotonic(), self._clock.now())
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._save_changes)
                tasks.start_soon(self._expire)
                task_status.started()
                await self._follow_all(tasks)
        finally:
            with CancelScope(shield=True):
                await self._save()

    async def _follow_all(self, tasks: TaskGroup) -> None:
        following: dict[Instance, CancelScope] = {}
        while True:
            version = self._registry.version
            present = [each for each in self._registry.instances() if each.health_service is not None]
            for gone in following.keys() - set(present):
                following.pop(gone).cancel()
            for instance in present:
                if instance not in following:
                    following[instance] = CancelScope()
                    source = Source(instance.name, next(self._numbers))
                    tasks.start_soon(self._follow, instance, source, following[instance])
            await self._registry.changed(version)

    async def _follow(self, instance: Instance, source: Source, scope: CancelScope) -> None:
        with bound(driver=instance.name):
            with scope:
                await self._listen_on_and_on(instance, source)
            if scope.cancelled_caught:
                self._changed(self._cache.end(source, self._clock.monotonic()))

    async def _listen_on_and_on(self, instance: Instance, source: Source) -> None:
        told = ""  # of what was warned
        while True:
            opened = self._clock.monotonic()
            problem = await self._listen(instance, source)
            now = self._clock.monotonic()
            self._changed(self._cache.end(source, now))
            if isinstance(problem, PluginUnimplemented):
                log.info("health is advertised and not offered", extra=facts(err=problem))
                return
            is_news = str(problem) != told or now - opened >= self._settings.steady
            level = logging.WARNING if is_news else logging.DEBUG
            log.log(level, "health of devices not heard", extra=facts(err=problem))
            told = str(problem)
            await self._clock.sleep(self._settings.retry)

    async def _listen(self, instance: Instance, source: Source) -> PluginError | None:
        """Until the stream ends; None if nothing was wrong with it."""
        try:
            async with aclosing(instance.health()) as lists:
                async for devices in lists:
                    self._changed(self._cache.report(source, devices, self._clock.monotonic()))
        except PluginError as e:
            return e
        return None

    def _changed(self, devices: frozenset[DeviceIdentity]) -> None:
        """Also to be called when nothing did: the next expiry may be another one now."""
        if self._next_expiry() < self._due:
            self._alarm.set()
        if not devices:
            return
        self._dirty.set()
        if pods := self._users(devices):
            self._on_change(pods)

    def _next_expiry(self) -> float:
        due = self._cache.next_expiry
        return math.inf if due is None else due

    async def _expire(self) -> None:
        while True:
            self._alarm, self._due = Event(), self._next_expiry()
            async with create_task_group() as tasks:
                if self._due < math.inf:
                    tasks.start_soon(self._ring, self._due, self._alarm)
                await self._alarm.wait()
                tasks.cancel_scope.cancel()
            self._changed(self._cache.expire(self._clock.monotonic()))

    async def _ring(self, due: float, alarm: Event) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        alarm.set()

    async def _save_changes(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty = Event()
            await self._save()

    async def _save(self) -> None:
        await self._store.write(self._cache.saved(self._clock.monotonic(), self._clock.now()))
