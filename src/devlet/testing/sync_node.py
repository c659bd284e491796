"""A node for tests without `async`: the same node, in an event loop of its own in another thread.

    with node_thread() as thread, SyncNode.start(thread) as node:
        node.create_pod("train", limits={"cpu": "1"})
        node.until_running("train")

The methods are those of `Node` and `DriverRunner`, and block until they are done. All nodes of a process share one
thread, because gRPC works best with a single event loop.
"""

import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from devlet.testing.driver_runner import DriverRunner
from devlet.testing.grpc_loop import GrpcLoop
from devlet.testing.node import Node
from devlet.testing.node_places import NodePlaces
from devlet.testing.waiting import DEADLINE

__all__ = ["SyncDriver", "SyncNode", "node_thread"]

PATIENCE = 2 * DEADLINE  # for any call, unless it may wait longer: the wait itself fails first

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N", bound=Node | DriverRunner)


@contextmanager
def node_thread() -> Iterator[BlockingPortal]:
    """The thread in which the nodes run."""
    with start_blocking_portal("asyncio", {"loop_factory": GrpcLoop}) as portal:
        yield portal


def _blocking(method: Callable[Concatenate[Any, P], Awaitable[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return the method for calls from another thread."""

    def call(self: "_InThread[Any]", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(partial(method, self._inner, *args, **kwargs), float(str(kwargs.get("within", 0))))

    return cast(Callable[Concatenate[Any, P], T], update_wrapper(call, method))


class _InThread(Generic[N]):
    def __init__(self, thread: BlockingPortal, inner: N) -> None:
        self._thread = thread
        self._inner: N = inner

    def _run(self, call: Callable[[], Awaitable[T]], within: float = 0.0) -> T:
        future = self._thread.start_task_soon(call)
        patience = max(PATIENCE, 2 * within)
        try:
            return future.result(patience)
        except TimeoutError:
            if future.done():
                raise  # its own
            raise AssertionError(f"no answer from the node within {patience:g} s") from None
        finally:
            future.cancel()


class SyncDriver(_InThread[DriverRunner]):
    """A driver process: see `DriverRunner`."""

    @property
    def pid(self) -> int:
        return self._inner.pid

    @property
    def returncode(self) -> int | None:
        return self._inner.returncode

    @property
    def log_file(self) -> Path:
        return self._inner.log_file

    @property
    def log(self) -> str:
        return self._inner.log

    def send_signal(self, number: signal.Signals) -> None:
        self._thread.call(self._inner.send_signal, number)

    stop = _blocking(DriverRunner.stop)
    kill = _blocking(DriverRunner.kill)
    restart = _blocking(DriverRunner.restart)
    until_registered = _blocking(DriverRunner.until_registered)


class SyncNode(NodePlaces, _InThread[Node]):
    """A node: see `Node`."""

    def __init__(self, thread: BlockingPortal, inner: Node) -> None:
        super().__init__(thread, inner)
        self.name, self.root = inner.name, inner.root

    @classmethod
    @contextmanager
    def start(cls, thread: BlockingPortal, **options: Any) -> Iterator[Self]:
        """Run a node. The options are those of `Node.start`."""
        with thread.wrap_async_context_manager(Node.start(**options)) as node:
            yield cls(thread, node)

    @contextmanager
    def driver(self, command: Sequence[str | Path], **options: Any) -> Iterator[SyncDriver]:
        """Run a driver as a process beside this node. The options are those of `DriverRunner.start`."""
        with self._thread.wrap_async_context_manager(self._inner.driver(command, **options)) as driver:
            yield SyncDriver(self._thread, driver)

    driver_kubeconfig = _blocking(Node.driver_kubeconfig)
    driver_paths = _blocking(Node.driver_paths)

    stop = _blocking(Node.stop)
    crash = _blocking(Node.crash)
    restart = _blocking(Node.restart)
    advance = _blocking(Node.advance)

    apply = _blocking(Node.apply)
    create = _blocking(Node.create)
    create_pod = _blocking(Node.create_pod)
    create_claim = _blocking(Node.create_claim)
    create_template = _blocking(Node.create_template)
    create_class = _blocking(Node.create_class)
    create_slice = _blocking(Node.create_slice)
    get = _blocking(Node.get)
    list = _blocking(Node.list)
    delete = _blocking(Node.delete)

    call = _blocking(Node.call)
    pod = _blocking(Node.pod)
    pods = _blocking(Node.pods)
    annotate = _blocking(Node.annotate)
    devices = _blocking(Node.devices)
    held = _blocking(Node.held)
    holders = _blocking(Node.holders)
    containers = _blocking(Node.containers)
    environment = _blocking(Node.environment)
    slices = _blocking(Node.slices)
    plugin_states = _blocking(Node.plugin_states)
    driver_states = _blocking(Node.driver_states)
    prepared = _blocking(Node.prepared)
    events = _blocking(Node.events)

    wait_for = _blocking(Node.wait_for)
    until_pod = _blocking(Node.until_pod)
    until_phase = _blocking(Node.until_phase)
    until_running = _blocking(Node.until_running)
    until_gone = _blocking(Node.until_gone)
    until_allocated = _blocking(Node.until_allocated)
    until_registered = _blocking(Node.until_registered)
    until_left = _blocking(Node.until_left)
    until_published = _blocking(Node.until_published)
    until_healthy = _blocking(Node.until_healthy)
    until_event = _blocking(Node.until_event)
