"""Start, stop and crash a node in this process, any number of times on the same root.

A crash here is not a SIGKILL, which would end the test as well. But it leaves what a killed process would leave: from
that moment on nothing is written to the store, all calls and connections end at once, and files that the node writes
while it ends are restored. Files and sockets of drivers are not touched. For a real SIGKILL there is
`devlet.testing.node_process`.
"""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from devlet.daemon import kube_api, root
from devlet.daemon.config import Config
from devlet.daemon.main import Embedded, embedded_parts
from devlet.daemon.root import DEVICE_PLUGINS, POD_RESOURCES
from devlet.errors import InUse, Unavailable
from devlet.kit import file_lock
from devlet.kit.clock import Clock
from devlet.node.claims import health_store, manager
from devlet.plugins import registration_server
from devlet.runtime import none
from devlet.serve import pod_resources
from devlet.state import device_checkpoint

__all__ = ["Leftovers", "NodeLife", "beside"]

for _late in ("devlet.daemon.control", "devlet.alloc.admission"):  # otherwise the first node would load them
    import_module(_late)

_FILES = (
    f"{DEVICE_PLUGINS}/{device_checkpoint.FILE_NAME}",
    manager.CHECKPOINT,
    health_store.FILE,
    none.STATE_FILE,
)
_SOCKETS = (
    f"{DEVICE_PLUGINS}/{registration_server.SOCKET}",
    f"{POD_RESOURCES}/{pod_resources.SOCKET}",
    kube_api.SOCKET,
)


@asynccontextmanager
async def beside() -> AsyncIterator[TaskGroup]:
    """A task group for work beside a block. An error of the block is not wrapped in a group."""
    stack = AsyncExitStack()
    tasks = await stack.enter_async_context(anyio.create_task_group())
    try:
        yield tasks
    except anyio.get_cancelled_exc_class() as e:
        await stack.__aexit__(type(e), e, e.__traceback__)  # raises the error that caused the cancellation, if any
        raise
    except BaseException:
        await stack.aclose()
        raise
    await stack.aclose()


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The files of a node at one moment, without its store."""

    root: Path
    files: dict[str, bytes]
    sockets: tuple[str, ...]

    @classmethod
    def now(cls, root: Path) -> Self:
        files = {name: (root / name).read_bytes() for name in _FILES if (root / name).is_file()}
        return cls(root, files, tuple(name for name in _SOCKETS if (root / name).is_socket()))

    def put_back(self) -> None:
        """Restore the files. Sockets are files without a listener."""
        for name in _FILES:
            if name in self.files:
                (self.root / name).write_bytes(self.files[name])
            else:
                (self.root / name).unlink(missing_ok=True)
        for name in self.sockets:
            if not (self.root / name).exists():
                with closing(socket.socket(socket.AF_UNIX)) as dead:
                    dead.bind(str(self.root / name))


class NodeLife:
    """Starts and stops the node. `configure` is called at every start. The task group is that of the block around the
    node: if a part of the node fails, so does the block."""

    def __init__(self, tasks: TaskGroup, configure: Callable[[], Config], clock: Clock) -> None:
        self.clock = clock
        self._tasks = tasks
        self._configure = configure
        self._parts: Embedded | None = None
        self._scope = anyio.CancelScope()
        self._asked = anyio.Event()
        self._ended = anyio.Event()

    @property
    def is_running(self) -> bool:
        return self._parts is not None

    @property
    def parts(self) -> Embedded:
        if self._parts is None:
            raise Unavailable("the node does not run: start it again with restart()")
        return self._parts

    async def start(self) -> None:
        """Start the node, and wait until drivers can register and pods are served."""
        if self.is_running:
            raise InUse("the node runs already")
        await self._tasks.start(self._live)

    async def _live(self, *, task_status: TaskStatus[None]) -> None:
        config = self._configure()
        root.prepare(config.root)
        self._scope, self._asked, self._ended = anyio.CancelScope(), anyio.Event(), anyio.Event()
        try:
            with self._scope, file_lock.held(config.root / root.LOCK_FILE):
                async with embedded_parts(config, self.clock) as self._parts:
                    task_status.started()
                    await self._asked.wait()
                    self._scope.deadline = anyio.current_time() + config.stop_timeout
        finally:
            self._parts = None
            self._ended.set()

    async def stop(self) -> None:
        """Stop the node as on SIGTERM, if it runs."""
        if self.is_running:
            self._asked.set()
            await self._ended.wait()

    async def crash(self) -> None:
        """End the node as SIGKILL would, as far as others can see."""
        self.parts.store.freeze()
        left = Leftovers.now(self._configure().root)
        self._scope.cancel()
        await self._ended.wait()
        left.put_back()
