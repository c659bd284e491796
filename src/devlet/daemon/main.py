"""The daemon: one instance per root; parts that start in order, and stop in the reverse order on a signal.

A signal while the parts are starting cancels the start. After that the first signal stops them one by one, all
together within `stop_timeout`; the second one ends the process at once, which is safe: everything is durable
when it is acknowledged.
"""

import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from time import monotonic

from anyio import TASK_STATUS_IGNORED, CancelScope, Event, current_time, open_signal_receiver, sleep_forever
from anyio.abc import TaskStatus

from devlet.cluster.store.store import open_store
from devlet.control import namespace_controller
from devlet.control.custom_resource_controller import CustomResourceController
from devlet.control.namespace_controller import NamespaceController
from devlet.daemon import root
from devlet.daemon.config import Config
from devlet.daemon.kube_api import serving
from devlet.daemon.node import NodeAgent
from devlet.errors import Cause, Unavailable
from devlet.kit import file_lock, sd_notify
from devlet.kit.clock import SystemClock
from devlet.kit.facts import facts
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects.custom_resources import DEFINITION
from devlet.objects.kinds import BUILT_IN
from devlet.objects.validation import Rules
from devlet.serve.kube_api.health import Check

log = logging.getLogger(__name__)

Parts = Callable[[Config], AbstractAsyncContextManager[None]]

DATABASE = "cluster.db"


def _check_selector(expression: str, stored: bool) -> Sequence[Cause]:
    """Loaded with the first selector that somebody writes: most starts need no compiler."""
    from devlet.alloc.admission import check_selector

    return check_selector(expression, stored)


@asynccontextmanager
async def embedded(config: Config) -> AsyncIterator[None]:
    """The parts of a node with the embedded cluster, in the order in which they start."""
    clock = SystemClock()
    settings = replace(config.store, collect_garbage="garbage-collector" in config.controllers)
    kinds, rules = (*BUILT_IN, DEFINITION), Rules(check_selector=_check_selector)
    async with open_store(config.root / DATABASE, settings, clock, kinds=kinds, rules=rules) as store:
        log.info("store opened", extra=facts(path=config.root / DATABASE, version=store.version))
        _tune_garbage_collection()
        namespaces = NamespaceController(
            store,
            store.catalogue,
            clock,
            namespace_controller.Settings(
                default_service_accounts="serviceaccount" in config.controllers,
                finalize="namespace" in config.controllers,
            ),
        )
        definitions = CustomResourceController(store, store.catalogue, clock)
        metrics = Registry()
        node = NodeAgent(store, config, clock, metrics)
        checks = [Check("device-plugin", node.registration.health)]
        async with (
            running(definitions.run),
            running(namespaces.run),
            serving(store, config, clock, views=node.views, metrics=metrics, checks=checks),
            node.running(),
        ):
            yield


def _tune_garbage_collection() -> None:
    """A large slice is a thousand small objects that are gone again at once: looking for cycles among them every
    700 allocations takes a sixth of a write (bench/store.py --gc)."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


async def run(config: Config, parts: Parts = embedded, on_ready: Callable[[], None] = lambda: None) -> None:
    """Run the parts until SIGINT or SIGTERM. InUse if another process runs on this root."""
    began = monotonic()
    root.prepare(config.root)
    notifier = sd_notify.from_environment(os.environ)
    stop = _Stop(config.stop_timeout)
    with file_lock.held(config.root / root.LOCK_FILE):
        async with running(stop.listen), running(notifier.watchdog):
            with stop.scope:
                async with parts(config):
                    log.info("ready", extra=facts(root=config.root, node=config.node_name, took=monotonic() - began))
                    notifier.ready()
                    on_ready()
                    await stop.asked()
                    notifier.stopping()
        stop.check()
    log.info("stopped")


class _Stop:
    """What a signal sets off. `scope` goes around the parts, from before their start to after their stop."""

    def __init__(self, timeout: float) -> None:
        self.scope = CancelScope()
        self._timeout = timeout
        self._started = False
        self._asked = Event()

    async def listen(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """A part: wait for the first signal; the next one then has its deadly default effect."""
        with open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                log.info("stop asked for", extra=facts(signal=number.name))
                break
        with _deadly(signal.SIGINT):
            self._asked.set() if self._started else self.scope.cancel()
            await sleep_forever()

    async def asked(self) -> None:
        """Everything has started: return when it is to stop, within the time for stopping."""
        self._started = True
        await self._asked.wait()
        self.scope.deadline = current_time() + self._timeout

    def check(self) -> None:
        """Unavailable if the parts did not stop in time."""
        if self._asked.is_set() and self.scope.cancelled_caught:
            raise Unavailable(f"stopping took longer than {self._timeout:g} s; the rest was cancelled")


@contextmanager
def _deadly(number: signal.Signals) -> Iterator[None]:
    """Within the block the signal ends the process, instead of becoming a KeyboardInterrupt."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)
