"""Keep a device plugin registered: the plugin calls the node on kubelet.sock, or the node finds it in a directory.

When a kubelet starts, it removes all sockets beside its own and creates kubelet.sock again. A plugin without a socket
has to be served again before it registers, so `keep` returns. A kubelet that lost a plugin's list does not ask for it
again, so a plugin whose list has no reader registers again.
"""

import logging
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

import anyio
import grpc

from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.dir_watch import Change, DirWatch, Found, Gone, Rescanned
from devlet.kit.facts import facts
from devlet.kit.grpc_calls import answered
from devlet.kit.parts import first
from devlet.sdk.plugin_service import VERSION, Optional
from devlet.sdk.registrar import DEVICE_PLUGIN, Registrar
from devlet.sdk.server import Methods, SocketServer
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["KUBELET_SOCKET", "FoundRegistration", "KubeletRegistration", "KubeletSocket", "Registration", "Settings"]

log = logging.getLogger(__name__)

KUBELET_SOCKET: Final = "kubelet.sock"

_METHOD = "/v1beta1.Registration/Register"
_CHANNEL = [
    ("grpc.default_authority", "localhost"),  # the default for unix sockets is a path, which some servers refuse
    ("grpc.use_local_subchannel_pool", 1),  # a shared one would inherit the back-off of a kubelet that is gone
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
]


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    timeout: float = 30.0  # of a call: the node connects to the plugin before it answers
    retry: Backoff = field(default=Backoff(0.2, 30.0))
    check: float = 60.0  # between checks that the list has a reader


class Registration(Protocol):
    """One of the two ways to register. `methods` are served on `socket` beside the plugin's own methods. `watch` must
    be open while `keep` runs."""

    @property
    def socket(self) -> Path: ...

    @property
    def methods(self) -> tuple[Methods, ...]: ...

    @property
    def watch(self) -> DirWatch: ...

    async def keep(self, server: SocketServer, is_followed: Callable[[], bool]) -> None:
        """Keep the plugin registered until it has to be served again."""
        ...


class KubeletSocket:
    """The state of kubelet.sock, derived from the changes of its directory without I/O.

    Two sockets can have the same inode number, because a file system reuses it at once. But a socket whose name went
    away is always a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generation = 0
        self.is_there = False
        self._file: tuple[int, ...] = ()

    def apply(self, changes: Iterable[Change]) -> None:
        lost = False
        for change in changes:
            match change:
                case Rescanned():
                    self.is_there, lost = False, change.lost
                case Gone() if change.path == self.path or (change.directory and change.path in self.path.parents):
                    self.is_there, self._file = False, ()
                case Found(self.path, status) if stat.S_ISSOCK(status.st_mode):
                    self._found(status, lost)
        if not self.is_there:
            self._file = ()

    def _found(self, status: os.stat_result, lost: bool) -> None:
        file = (status.st_dev, status.st_ino, status.st_ctime_ns)
        same = self._file == file if lost else self._file[:2] == file[:2]
        self.generation += not same
        self.is_there, self._file = True, file


class KubeletRegistration:
    """The plugin calls the node. Its socket is beside kubelet.sock."""

    methods: tuple[Methods, ...] = ()

    def __init__(
        self, resource: str, socket: Path, optional: Optional, clock: Clock, settings: Settings = Settings()
    ) -> None:
        self.socket = socket
        self._resource = resource
        self._clock = clock
        self._settings = settings
        options = optional.message()
        self._request = pb.RegisterRequest(
            version=VERSION, endpoint=socket.name, resource_name=resource, options=options
        ).SerializeToString()
        self._kubelet = KubeletSocket(socket.parent / KUBELET_SOCKET)
        self.watch = DirWatch(socket.parent, skip=lambda name: name not in (KUBELET_SOCKET, socket.name))
        self._registered = 0  # the generation of kubelet.sock
        self._check_at = 0.0
        self._failures = 0
        self._waits = False

    async def keep(self, server: SocketServer, is_followed: Callable[[], bool]) -> None:
        self._registered = 0
        while server.is_there:
            if not self._kubelet.is_there:
                await self._wait_for_kubelet()
            elif self._registered != self._kubelet.generation:
                await self._try()
            else:
                await self._rest(is_followed)

    async def _wait_for_kubelet(self) -> None:
        await self._look()
        if not self._kubelet.is_there and not self._waits:
            log.info("waiting for the kubelet", extra=self._facts())
        self._waits = not self._kubelet.is_there

    async def _try(self) -> None:
        generation = self._kubelet.generation
        try:
            await self._register()
        except grpc.aio.AioRpcError as e:
            delay = self._settings.retry.delay(self._failures, random.random)
            self._failures += 1
            reason = e.details() or e.code().name
            log.warning("registration failed, retrying", extra=self._facts(err=reason, after=round(delay, 1)))
            await first(self._look, partial(self._clock.sleep, delay))
        else:
            self._registered, self._failures = generation, 0
            self._check_at = self._clock.monotonic() + self._settings.check
            log.info("registered", extra=self._facts())

    async def _rest(self, is_followed: Callable[[], bool]) -> None:
        await first(self._look, partial(self._clock.sleep, self._check_at - self._clock.monotonic()))
        if self._clock.monotonic() < self._check_at:
            return
        self._check_at = self._clock.monotonic() + self._settings.check
        if not is_followed():
            log.warning("no node reads the device list, registering again", extra=self._facts())
            self._registered = 0

    async def _look(self) -> None:
        before = self._kubelet.generation
        self._kubelet.apply(await self.watch.changes())
        if self._kubelet.generation != before:
            self._failures = 0

    async def _register(self) -> None:
        target = f"unix:{quote(os.fsencode(self._kubelet.path))}"
        channel = grpc.aio.insecure_channel(target, options=_CHANNEL)
        try:
            register: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_METHOD)
            await answered(register(self._request, timeout=self._settings.timeout))
        finally:
            with anyio.CancelScope(shield=True):
                await channel.close()

    def _facts(self, **values: object) -> dict[str, object]:
        return facts(resourceName=self._resource, socket=self._kubelet.path, **values)


class FoundRegistration:
    """The node watches the directory of the socket, and asks the plugin for its name."""

    def __init__(self, resource: str, socket: Path, clock: Clock, settings: Settings = Settings()) -> None:
        self.socket = socket
        self._resource = resource
        self._clock = clock
        self._settings = settings
        self.registrar = Registrar(DEVICE_PLUGIN, resource, str(socket.absolute()), [VERSION])
        self.watch = DirWatch(socket.parent, skip=lambda name: name != socket.name)

    @property
    def methods(self) -> tuple[Methods, ...]:
        return (self.registrar.methods,)

    async def keep(self, server: SocketServer, is_followed: Callable[[], bool]) -> None:
        before, due = self.registrar.notifications, self._clock.monotonic() + self._settings.check
        while server.is_there:
            await first(self.watch.changes, partial(self._clock.sleep, due - self._clock.monotonic()))
            if self._clock.monotonic() < due:
                continue
            due = self._clock.monotonic() + self._settings.check
            if self._was_accepted(since=before) and not is_followed():
                named = facts(resourceName=self._resource, socket=self.socket)
                log.warning("no node reads the device list, serving again to be found", extra=named)
                return

    def _was_accepted(self, since: int) -> bool:
        status = self.registrar.status
        return self.registrar.notifications > since and status is not None and status.registered
