"""Follow the health streams of all DRA drivers that have one, and notify the pods that are affected by a change.

It is also a change when a stream ends, or when a driver does not repeat its report in time. One timer is enough for the
latter: it is set to the next moment at which a report expires.
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
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock, wait
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
    timeout: float = TIMEOUT  # for which a report is valid, if the driver does not specify it
    steady: float = 60.0  # if a stream was open this long, a warning is logged even for the same error as before


class Instance(Protocol):
    """One instance of a driver: see `devlet.plugins.dra_driver`."""

    @property
    def name(self) -> DriverName: ...

    @property
    def health_service(self) -> HealthService | None: ...

    def health(self) -> AsyncGenerator[tuple[DeviceReport, ...], None]: ...


class Registry(Protocol):
    """See `devlet.plugins.dra_registry`."""

    @property
    def version(self) -> int: ...

    def instances(self) -> Sequence[Instance]: ...

    async def changed(self, since: int) -> int: ...


class HealthFollower:
    """Keeps its file in `directory`. `users` returns the pods that have one of the given devices. `on_change` is called
    with the pods that are affected by a change; it must not block."""

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
        self._unsaved = Changes()
        self._sooner = Event()  # a report expires sooner than the timer knows
        self._due = math.inf  # the time to which the timer is set

    def health(self, device: DeviceIdentity) -> Health:
        return self._cache.health(device, self._clock.monotonic())

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Run until cancelled. Ready when the file is read. The last reports remain in the file: that devlet stops does
        not mean that the streams ended."""
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
                await self._listen_forever(instance, source)
            if scope.cancelled_caught:
                self._changed(self._cache.end(source, self._clock.monotonic()))

    async def _listen_forever(self, instance: Instance, source: Source) -> None:
        warned = ""  # the last problem that was logged as a warning
        while True:
            opened = self._clock.monotonic()
            problem = await self._listen(instance, source)
            now = self._clock.monotonic()
            self._changed(self._cache.end(source, now))
            if isinstance(problem, PluginUnimplemented):
                log.info("health service is advertised but not implemented", extra=facts(err=problem))
                return
            is_new = str(problem) != warned or now - opened >= self._settings.steady
            level = logging.WARNING if is_new else logging.DEBUG
            log.log(level, "health stream ended", extra=facts(err=problem))
            warned = str(problem)
            await self._clock.sleep(self._settings.retry)

    async def _listen(self, instance: Instance, source: Source) -> PluginError | None:
        """Record reports until the stream ends. Return why it ended, or None if there was no error."""
        try:
            async with aclosing(instance.health()) as lists:
                async for devices in lists:
                    self._changed(self._cache.report(source, devices, self._clock.monotonic()))
        except PluginError as e:
            return e
        return None

    def _changed(self, devices: frozenset[DeviceIdentity]) -> None:
        """Save the change and notify the pods. Has to be called even without changed devices, because the next report
        may expire sooner now."""
        if self._next_expiry() < self._due:
            self._sooner.set()
        if not devices:
            return
        self._unsaved.notify()
        if pods := self._users(devices):
            self._on_change(pods)

    def _next_expiry(self) -> float:
        due = self._cache.next_expiry
        return math.inf if due is None else due

    async def _expire(self) -> None:
        while True:
            self._sooner, self._due = Event(), self._next_expiry()
            await wait(self._sooner, self._clock, self._due - self._clock.monotonic())
            self._changed(self._cache.expire(self._clock.monotonic()))

    async def _save_changes(self) -> None:
        saved = 0
        while True:
            saved = await self._unsaved.after(saved)
            await self._save()

    async def _save(self) -> None:
        await self._store.write(self._cache.saved(self._clock.monotonic(), self._clock.now()))
