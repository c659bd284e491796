"""Keep the set of registered plugins equal to the set of sockets in the registry directory.

`plan` decides and `PluginWatcher` acts: one operation at a time for each path, and all paths concurrently. After a
failed registration, the operation waits and ends, and the registration is retried. The wait ends early if the socket is
removed or created again. A socket file outlives its process, so registered sockets are also checked for a listener.

    socket   ─▶ GetInfo ─▶ validate ─▶ register ─▶ accept ─▶ registered
       ▲  └── wait ◀── refuse ◀─┴──────────┘          │          │ socket removed, created again, or without listener
       └────────────────────────── deregister ◀───────┴──────────┘
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
from devlet.plugins import registration_client
from devlet.plugins.channels import listener_pid
from devlet.plugins.refusals import Refusals
from devlet.plugins.registration_client import PluginInfo, RegistrationClient, connected_client
from devlet.plugins.socket_dir import SocketDir

__all__ = ["Deregister", "Handler", "PluginWatcher", "Register", "Settings", "WatchedPlugin", "plan"]

log = logging.getLogger(__name__)

DIRECTORY_MODE = 0o750


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    client: registration_client.Settings = field(default_factory=registration_client.Settings)
    backoff: Backoff = field(default_factory=lambda: Backoff(0.5, 122.0, jitter=0.0))  # per socket path
    check: float = 5.0  # between two checks for listeners on the sockets of registered plugins
    at_once: int = 128  # plugins that are being registered at the same time
    watch: dir_watch.Settings = field(default_factory=dir_watch.Settings)


class Handler(Protocol):
    """Handles plugins of one type. For one plugin the order is validate, register, deregister."""

    def validate(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        """Raise `InvalidInput` with a message for the author of the plugin."""
        ...

    async def register(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        """Register the plugin. A `DevletError` is sent to the plugin, and the registration is retried later."""
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
    """Return what to do, removals first. A socket that was created again has another generation: its old plugin is
    deregistered before the new one is called."""
    gone = [Deregister(path) for path, was in registered.items() if seen.get(path) != was]
    new = [Register(path, now) for path, now in seen.items() if registered.get(path) != now]
    return [*gone, *new]


class WatchedPlugin(Struct, frozen=True):
    """The plugin on one socket path. `desired`: the socket exists. `actual`: the plugin is registered, or is being
    registered. `since` is when the socket was found, or when the plugin was registered. `message` is the last problem
    of a plugin that is not registered."""

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
    """One socket path. Cancelling `scope` cancels its operation, unless it is `firm`."""

    since: datetime
    busy: bool = False
    generation: int = 0  # of the current or the last attempt
    failures: int = 0
    message: str = ""
    info: PluginInfo | None = None
    scope: CancelScope = field(default_factory=CancelScope)
    firm: bool = True

    def begin(self, generation: int) -> CancelScope:
        """Begin an attempt to register the socket. The operation can be cancelled from now on."""
        if self.generation != generation:
            self.generation, self.failures, self.message, self.info = generation, 0, "", None
        self.scope, self.firm = CancelScope(), False
        return self.scope

    def cancel(self) -> None:
        """Cancel the operation, unless it has to be completed."""
        if not self.firm:
            self.scope.cancel()


class PluginWatcher:
    """`handlers` are by the type that plugins report. Plugins that were refused are added to `refusals`."""

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
        """Run until cancelled. Ready when the existing sockets have been found; their plugins are registered
        afterwards."""
        _make(self._directory)
        self._registered, self._slots = {}, {}  # an earlier run may have been cancelled at any point
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
        """Start what has to be done and is not under way. Called whenever sockets or registered plugins have
        changed."""
        for path, slot in list(self._slots.items()):
            if slot.generation != self._seen.get(path):
                slot.cancel()
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
        """Try once, and wait if that fails. If the socket changes, this is cancelled and leaves no trace."""
        with slot.begin(step.generation):
            try:
                async with self._limiter, connected_client(step.path, self._settings.client) as plugin:
                    await self._negotiate(slot, step, plugin)
            except DevletError as e:
                delay = self._failed(slot, e)
                slot.firm = False
                if self._seen.get(step.path) == step.generation:
                    await self._clock.sleep(delay)
        slot.firm = True

    async def _negotiate(self, slot: _Slot, step: Register, plugin: RegistrationClient) -> None:
        info = slot.info = await plugin.info()
        # From here on the operation is completed: a handler that has registered the plugin must also deregister it.
        slot.firm = True
        await checkpoint_if_cancelled()
        try:
            await self._admit(step, info, plugin)
        except DevletError as e:
            self._refusals.add(info.type, info.name, step.path, str(e))
            await self._refuse(plugin, e)
            raise
        try:
            await plugin.accept()
        except DevletError:
            await self._deregister(slot, step.path)
            raise
        slot.failures, slot.message, slot.since = 0, "", self._clock.now()
        self._refusals.remove(info.type, info.name)
        log.info("plugin registered", extra=facts(type=info.type, plugin=info.name))

    async def _admit(self, step: Register, info: PluginInfo, plugin: RegistrationClient) -> None:
        """Record the plugin before its handler registers it, so that it is deregistered if its socket is removed
        meanwhile."""
        if (handler := self._handlers.get(info.type)) is None:
            known = ", ".join(sorted(self._handlers))
            raise InvalidInput(f"no handler for plugin type {info.type!r} of socket {step.path}; there are: {known}")
        endpoint = plugin.served_on(info)
        handler.validate(info.name, endpoint, info.versions)
        self._registered[step.path] = _Registered(step.generation, handler, info.type, info.name, endpoint)
        try:
            await handler.register(info.name, endpoint, info.versions)
        except DevletError:
            del self._registered[step.path]
            raise

    async def _refuse(self, plugin: RegistrationClient, why: DevletError) -> None:
        try:
            await plugin.refuse(str(why))
        except DevletError as e:
            log.debug("plugin not notified of its refusal", extra=facts(err=e))

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
        """Record the failure. Return the seconds until the next attempt."""
        delay = self._settings.backoff.delay(slot.failures, random.random)
        level = logging.DEBUG if slot.message == str(error) else logging.WARNING  # a dead socket may exist for days
        log.log(level, "plugin not registered", extra=facts(err=error, delay=delay))
        slot.failures += 1
        slot.message = str(error)
        return delay

    async def _check_listeners(self, tasks: TaskGroup) -> None:
        """Deregister plugins whose process died: it leaves its socket file behind, which causes no event."""
        while True:
            await self._clock.sleep(self._settings.check)
            for path in list(self._registered):
                if not self._slots[path].busy and not _is_listened_on(path):
                    log.warning("socket of a registered plugin has no listener", extra=facts(socket=path))
                    self._start(tasks, Deregister(path))

    def _watched(self, path: Path, slot: _Slot) -> WatchedPlugin:
        info, plugin = slot.info, self._registered.get(path)
        return WatchedPlugin(
            socket=path,
            desired=path in self._seen,
            actual=plugin is not None,
            since=slot.since,
            type=info.type if info else "",
            name=info.name if info else "",
            endpoint=plugin.endpoint if plugin else None,
            message="" if plugin else slot.message,
        )


def _is_listened_on(path: Path) -> bool:
    try:
        listener_pid(path)
    except BlockingIOError:
        return True  # the backlog is full, so there is a listener
    except OSError:
        return False
    return True


def _make(directory: Path) -> None:
    try:
        directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as e:
        raise InvalidInput(f"the plugin registry {directory} cannot be created: {e.strerror or e}") from e
