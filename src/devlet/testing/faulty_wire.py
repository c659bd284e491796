"""Directories for a driver that are separate from those of its node, with a proxy for all calls between the two.

    async with FaultyWire.between(node.root) as wire:
        wire.faults.delay("NodePrepareResources", 0.5)
        ...                                              # start the driver with wire.root in place of the node's root

Neither of the two notices. The driver finds `kubelet.sock` in its usual place. Each socket that it creates appears in
the node's directories, under the same name. Where the driver sends the path of a socket to the node, the node gets the
path of the proxy. If the driver or the node ends or restarts, the other one sees what it would see without the proxies.

    driver's root                                 node's root
    device-plugins/kubelet.sock   (proxy)   ──▶   device-plugins/kubelet.sock
    device-plugins/gpu.sock                 ◀──   device-plugins/gpu.sock                (proxy)
    plugins_registry/gpu-reg.sock           ◀──   plugins_registry/gpu-reg.sock          (proxy)
    plugins/gpu/dra.sock                    ◀──   plugins/gpu/dra.sock                   (proxy)

Only sockets are mirrored, not files. CDI specs go to the node's own directory, as without faults.
"""

import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from devlet.daemon.root import DEVICE_PLUGINS, REGISTRY, lay_out
from devlet.errors import InvalidInput
from devlet.kit import dir_watch, socket_paths
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.dir_watch import Change, DirWatch, Found
from devlet.plugins.registration_server import SOCKET
from devlet.testing import grpc_messages
from devlet.testing.grpc_faults import Call, Faults
from devlet.testing.grpc_messages import GET_INFO, REGISTER
from devlet.testing.grpc_proxy import GrpcProxy
from devlet.testing.node_life import beside
from devlet.testing.socket_mirror import SocketMirror

__all__ = ["FaultyWire"]

PLUGINS = "plugins"
PREFIX = "w"  # of the driver's root, if it has to be made; short, because sockets go below

PATIENCE = 5.0  # seconds to wait for the proxy of a socket before the node gets its path

_FLAT = dir_watch.Settings(max_depth=0)


class FaultyWire:
    """The directories for a driver. A part (`run`), or created by `between`. `root` is the driver's."""

    def __init__(self, node_root: Path, root: Path, faults: Faults, clock: Clock = SystemClock()) -> None:
        self.node_root = node_root.absolute()
        self.root = root.absolute()
        self.faults = faults
        self.registry = self.root / REGISTRY
        self.device_plugins = self.root / DEVICE_PLUGINS
        self.plugins = self.root / PLUGINS
        self._clock = clock
        self._mirrors: dict[Path, SocketMirror] = {}  # by what is at the back
        self._tasks: TaskGroup | None = None

    @classmethod
    @asynccontextmanager
    async def between(
        cls, node_root: Path, root: Path | None = None, faults: Faults | None = None, clock: Clock = SystemClock()
    ) -> AsyncIterator[Self]:
        """Run for the duration of a block. Without a `root` the driver gets one below the node's.

        The node may start later: its directories are created here."""
        await anyio.to_thread.run_sync(lay_out, node_root)
        made = root or Path(await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, prefix=PREFIX, dir=node_root)))
        wire = cls(node_root, made, faults or Faults(), clock)
        async with beside() as tasks:
            await tasks.start(wire.run)
            try:
                yield wire
            finally:
                tasks.cancel_scope.cancel()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled. Ready when a driver may be started."""
        for folder in (self.registry, self.device_plugins, self.plugins):
            folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        async with anyio.create_task_group() as self._tasks:
            kubelet = self._mirror(self.node_root / DEVICE_PLUGINS / SOCKET, self.device_plugins / SOCKET)
            await kubelet.until_served()
            for name in (REGISTRY, DEVICE_PLUGINS):
                await self._tasks.start(self._follow, name)
            task_status.started()

    def cut(self) -> None:
        """Close all connections now, in both directions."""
        for mirror in self._mirrors.values():
            if mirror.proxy:
                mirror.proxy.socket.cut()

    def proxy(self, name: str) -> GrpcProxy:
        """Return the proxy of the socket of this file name, for faults of bytes (`proxy(name).socket.hold()`)."""
        found = [each.proxy for each in self._mirrors.values() if each.back.name == name and each.proxy]
        if not found:
            served = sorted(each.back.name for each in self._mirrors.values() if each.proxy)
            raise InvalidInput(f"there is no socket {name} now; there are {', '.join(served) or 'none'}")
        return found[0]

    async def _follow(self, folder: str, *, task_status: TaskStatus[None]) -> None:
        """Create a proxy in the node's directory for each socket that the driver creates in this one."""
        with DirWatch(self.root / folder, skip=lambda name: name == SOCKET, settings=_FLAT) as watch:
            self._take(folder, await watch.changes())
            task_status.started()
            while True:
                self._take(folder, await watch.changes())

    def _take(self, folder: str, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, Found) and change.path.is_socket():
                self._mirror(change.path, self.node_root / folder / change.path.name)

    def _mirror(self, back: Path, front: Path) -> SocketMirror:
        """Return the mirror of a socket, and start it if necessary."""
        if (known := self._mirrors.get(back)) is not None:
            return known
        if (size := socket_paths.length(front)) > socket_paths.MAX_BYTES:
            limit = f"a socket path has at most {socket_paths.MAX_BYTES}: use shorter roots"
            raise InvalidInput(f"{front} has {size} bytes, {limit}")
        made = self._mirrors[back] = SocketMirror(back, front, self._proxy)
        assert self._tasks is not None
        self._tasks.start_soon(made.run)
        return made

    def _proxy(self, front: Path, back: Path) -> GrpcProxy:
        return GrpcProxy(front, back, self.faults, asking=self._asking, answering=self._answering, clock=self._clock)

    # What they tell each other about sockets

    async def _asking(self, call: Call, message: bytes) -> bytes:
        """Wait for the plugin's proxy before the request is passed on: the node connects to it before it answers."""
        if call.path == REGISTER and (request := grpc_messages.request(call.path, message)):
            await self._served(self.device_plugins / request.endpoint)
        return message

    async def _answering(self, call: Call, message: bytes) -> bytes:
        info = grpc_messages.answer(call.path, message) if call.path == GET_INFO else None
        if info is None or not info.endpoint:
            return message
        info.endpoint = str(await self._served(Path(info.endpoint)))
        changed: bytes = info.SerializeToString()
        return changed

    async def _served(self, back: Path) -> Path:
        """Wait until the proxy of a driver's socket serves, if the driver's socket does."""
        mirror = self._mirror(back, self._front(back))
        with anyio.move_on_after(PATIENCE):
            await mirror.until_served()
        return mirror.front

    def _front(self, back: Path) -> Path:
        """Return the proxy's path. It is among the node's plugins if the socket is not below the driver's root."""
        if back.is_relative_to(self.root):
            return self.node_root / back.relative_to(self.root)
        return self.node_root / PLUGINS / back.parent.name / back.name
