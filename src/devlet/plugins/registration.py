"""Keep the set of registered plugins equal to the set of sockets in the registry directory.

`plan` decides, `PluginWatcher` does: for each path one operation at a time, different paths at once. A registration
that failed waits inside its operation and is tried again; the wait ends at once when its socket goes or is made anew.
A socket file outlives its process, so registered sockets are also asked now and then whether somebody listens.

    socket   ─▶ greet, introduction ─▶ validate ─▶ register ─▶ accept ─▶ registered
       ▲  └──────── wait ◀── refuse ◀─────┴───────────┘          │           │ socket gone, made anew, or nobody listens
       └───────────────────────────────────── deregister ◀───────┴───────────┘
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec import Struct

from devlet.errors import DevletError, InvalidInput
from devlet.kit import dir_watch
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import bound, facts
from devlet.plugins import introduction
from devlet.plugins.channels import listener_pid
from devlet.plugins.introduction import Greeting, Introduction, greeted
from devlet.plugins.refusals import Refusals
from devlet.plugins.socket_dir import SocketDir

__all__ = ["Deregister", "Handler", "PluginWatcher", "Register", "Settings", "WatchedPlugin", "plan"]

log = logging.getLogger(__name__)

DIRECTORY_MODE = 0o750


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    greeting: introduction.Settings = field(default_factory=introduction.Settings)
    backoff: Backoff = field(default_factory=lambda: Backoff(0.5, 122.0, jitter=0.0))  # per socket path
    check: float = 5.0  # between two looks whether somebody listens on the sockets of registered plugins
    at_once: int = 128  # plugins that are greeted at the same time
    watch: dir_watch.Settings = field(default_factory=dir_watch.Settings)


class Handler(Protocol):
    """What happens to plugins of one type. For one plugin the order is validate, register, deregister."""

    def validate(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        """`InvalidInput` with a text for the plugin's author."""
        ...

    async def register(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        """A `DevletError` means that it is not registered: it is told to the plugin, and tried again later."""
        ...

    async def deregister(self, name: str, endpoint: Path) -> None: ...


@dataclass(frozen=True, slots=True)
class Deregister:
    path: Path


@dataclass(frozen=True, slots=True)
class Register:
    path: Path
    generation: int


def plan(seen: Mapping[Path, int], registered: Mapping[Path, int]) -> list[Register | Deregister]:
    """What to do, removals first. A socket that was made anew has another generation: its old plugin is deregistered
    before the new one is greeted."""
    gone = [Deregister(path) for path, was in registered.items() if seen.get(path) != was]
    new = [Register(path, now) for path, now in seen.items() if registered.get(path) != now]
    return [*gone, *new]


class WatchedPlugin(Struct, frozen=True):
    """What is known of one socket path. `desired`: its socket is there; `actual`: it is registered, or just being.
    `since` is when it was seen, or registered if it is. `message` is what went wrong last, if it is not registered."""

    socket: Path
    desired: bool
    actual: bool
    since: datetime
    type: str = ""
    name: str = ""
    endpoint: Path | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Registered:
    generation: int
    handler: Handler
    type: str
    name: str
    endpoint: Path


@dataclass(slots=True, eq=False)
class _Slot:
    """One socket path. Its operation can be broken off in `scope` while it is not `firm`."""

    since: datetime
    busy: bool = False
    generation: int = 0  # that is tried, or was last
    failures: int = 0
    message: str = ""
    introduction: Introduction | None = None
    scope: CancelScope = field(default_factory=CancelScope)
    firm: bool = True

    def begin(self, generation: int) -> CancelScope:
        if self.generation != generation:
            self.generation, self.failures, self.message, self.introduction = generation, 0, "", None
        self.scope, self.firm = CancelScope(), False
        return self.scope

    def break_off(self) -> None:
        if not self.firm:
            self.scope.cancel()


class PluginWatcher:
    """`handlers` are by type, as plugins call theirs. `refusals` gets the plugins that were refused."""

    def __init__(
        self,
        directory: Path,
        handlers: Mapping[str, Handler],
        *,
        clock: Clock,
        settings: Settings = Settings(),
        refusals: Refusals | None = None,
    ) -> None:
        self._directory = directory
        self._handlers = handlers
        self._clock = clock
        self._settings = settings
        self._refusals = refusals or Refusals(clock)
        self._limiter = anyio.CapacityLimiter(settings.at_once)
        self._seen: dict[Path, int] = {}
        self._registered: dict[Path, _Registered] = {}
        self._slots: dict[Path, _Slot] = {}

    def plugins(self) -> list[WatchedPlugin]:
        return [self._watched(path, slot) for path, slot in sorted(self._slots.items())]

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ready when the sockets that are there have been seen; greeting them goes on beside."""
        _make(self._directory)
        self._registered, self._slots = {}, {}  # an earlier run may have been cut off anywhere
        with SocketDir(self._directory, self._settings.watch) as sockets:
            async with anyio.create_task_group() as tasks:
                self._seen = await sockets.changed()
                self._reconcile(tasks)
                tasks.start_soon(self._check_listeners, tasks)
                task_status.started()
                while True:
                    self._seen = await sockets.changed()
                    self._reconcile(tasks)

    def _reconcile(self, tasks: TaskGroup) -> None:
        """Start what has to be done and is not under way: whenever sockets or registered plugins have changed."""
        for path, slot in list(self._slots.items()):
            if slot.generation != self._seen.get(path):
                slot.break_off()
            if not slot.busy and path not in self._seen and path not in self._registered:
                del self._slots[path]
                self._refusals.remove_socket(path)
        for step in plan(self._seen, {path: plugin.generation for path, plugin in self._registered.items()}):
            self._start(tasks, step)

    def _start(self, tasks: TaskGroup, step: Register | Deregister) -> None:
        slot = self._slots.setdefault(step.path, _Slot(self._clock.now()))
        if not slot.busy:
            slot.busy = True
            tasks.start_soon(self._perform, tasks, slot, step)

    async def _perform(self, tasks: TaskGroup, slot: _Slot, step: Register | Deregister) -> None:
        with bound(socket=step.path):
            match step:
                case Register():
                    await self._register(slot, step)
                case Deregister():
                    await self._deregister(slot, step.path)
        slot.busy = False
        self._reconcile(tasks)

    async def _register(self, slot: _Slot, step: Register) -> None:
        """One try, and the wait after it if it fails. Broken off when the socket changes, it leaves no trace."""
        with slot.begin(step.generation):
            try:
                async with self._limiter, greeted(step.path, self._settings.greeting) as plugin:
                    await self._greet(slot, step, plugin)
            except DevletError as e:
                delay = self._failed(slot, e)
                slot.firm = False
                if self._seen.get(step.path) == step.generation:
                    await self._clock.sleep(delay)
        slot.firm = True

    async def _greet(self, slot: _Slot, step: Register, plugin: Greeting) -> None:
        said = slot.introduction = await plugin.introduction()
        # From here on it is seen through: whoever was told to register is told to deregister too.
        slot.firm = True
        await checkpoint_if_cancelled()
        try:
            await self._admit(step, said, plugin)
        except DevletError as e:
            self._refusals.add(said.type, said.name, step.path, str(e))
            await self._refuse(plugin, e)
            raise
        try:
            await plugin.accept()
        except DevletError:
            await self._deregister(slot, step.path)
            raise
        slot.failures, slot.message, slot.since = 0, "", self._clock.now()
        self._refusals.remove(said.type, said.name)
        log.info("plugin registered", extra=facts(type=said.type, plugin=said.name))

    async def _admit(self, step: Register, said: Introduction, plugin: Greeting) -> None:
        """Written down before the handler registers it, so that a socket that goes meanwhile is not forgotten."""
        if (handler := self._handlers.get(said.type)) is None:
            known = ", ".join(sorted(self._handlers))
            raise InvalidInput(f"no handler for plugin type {said.type!r} of socket {step.path}; there are: {known}")
        endpoint = plugin.served_on(said)
        handler.validate(said.name, endpoint, said.versions)
        self._registered[step.path] = _Registered(step.generation, handler, said.type, said.name, endpoint)
        try:
            await handler.register(said.name, endpoint, said.versions)
        except DevletError:
            del self._registered[step.path]
            raise

    async def _refuse(self, plugin: Greeting, why: DevletError) -> None:
        try:
            await plugin.refuse(str(why))
        except DevletError as e:
            log.debug("plugin was not told that it is refused", extra=facts(err=e))

    async def _deregister(self, slot: _Slot, path: Path) -> None:
        plugin = self._registered.pop(path)
        slot.since = self._clock.now()
        try:
            await plugin.handler.deregister(plugin.name, plugin.endpoint)
        except DevletError as e:
            log.warning("plugin not deregistered cleanly", extra=facts(type=plugin.type, plugin=plugin.name, err=e))
        else:
            log.info("plugin deregistered", extra=facts(type=plugin.type, plugin=plugin.name))

    def _failed(self, slot: _Slot, error: DevletError) -> float:
        """Note it. The time to wait before the next try."""
        delay = self._settings.backoff.delay(slot.failures, random.random)
        level = logging.DEBUG if slot.message == str(error) else logging.WARNING  # a dead socket may lie there for days
        log.log(level, "plugin not registered", extra=facts(err=error, delay=delay))
        slot.failures += 1
        slot.message = str(error)
        return delay

    async def _check_listeners(self, tasks: TaskGroup) -> None:
        """A process that dies leaves its socket file behind, and that makes no event."""
        while True:
            await self._clock.sleep(self._settings.check)
            for path in list(self._registered):
                if not self._slots[path].busy and not _is_listened_on(path):
                    log.warning("nobody listens on the socket of a registered plugin", extra=facts(socket=path))
                    self._start(tasks, Deregister(path))

    def _watched(self, path: Path, slot: _Slot) -> WatchedPlugin:
        said, plugin = slot.introduction, self._registered.get(path)
        return WatchedPlugin(
            socket=path,
            desired=path in self._seen,
            actual=plugin is not None,
            since=slot.since,
            type=said.type if said else "",
            name=said.name if said else "",
            endpoint=plugin.endpoint if plugin else None,
            message="" if plugin else slot.message,
        )


def _is_listened_on(path: Path) -> bool:
    try:
        listener_pid(path)
    except BlockingIOError:
        return True  # too many wait to be accepted, so somebody listens
    except OSError:
        return False
    return True


def _make(directory: Path) -> None:
    try:
        directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as e:
        raise InvalidInput(f"the plugin registry {directory} cannot be made: {e.strerror or e}") from e
