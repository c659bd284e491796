"""The daemon: one instance per root, whose parts start in order and stop in reverse order on a signal.

A signal during the start cancels it. Later, the first signal stops the parts one by one, all of them within
`stop_timeout`. A second signal ends the process at once, which is safe, because everything is durable before it is
acknowledged.
"""

import gc
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from time import monotonic

from anyio import create_task_group, to_thread

from devlet.cluster.client import Cluster
from devlet.cluster.quarantine import Quarantine
from devlet.cluster.store.store import Store, open_store
from devlet.control import namespace_controller
from devlet.control.custom_resource_controller import CustomResourceController
from devlet.control.namespace_controller import NamespaceController
from devlet.control.node_lifecycle import NodeLifecycle
from devlet.daemon import controllers, membership, root, root_format, root_upkeep
from devlet.daemon.config import Config
from devlet.daemon.kube_api import serving
from devlet.daemon.node import NodeAgent
from devlet.errors import Cause
from devlet.kit import file_lock, sd_notify
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.facts import facts
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.kit.stopping import Stop
from devlet.objects.custom_resources import DEFINITION
from devlet.objects.kind_rules import Rules
from devlet.objects.kinds import BUILT_IN

log = logging.getLogger(__name__)

Parts = Callable[[Config], AbstractAsyncContextManager[None]]


def _check_selector(expression: str, stored: bool) -> Sequence[Cause]:
    """Check a selector. The compiler is imported with the first one, because most starts do not need it."""
    from devlet.alloc.admission import check_selector

    return check_selector(expression, stored)


def _selector_work(expression: str, stored: bool) -> int:
    from devlet.alloc.admission import selector_work

    return selector_work(expression, stored)


@dataclass(frozen=True, slots=True)
class Embedded:
    """A node and its cluster, while they run."""

    store: Store
    node: NodeAgent


@asynccontextmanager
async def embedded(config: Config) -> AsyncIterator[None]:
    """Run a node with the embedded cluster in a process that does nothing else."""
    async with embedded_parts(config, SystemClock(), opened=_tune_garbage_collection):
        yield


@asynccontextmanager
async def embedded_parts(
    config: Config, clock: Clock, *, opened: Callable[[], None] = lambda: None
) -> AsyncIterator[Embedded]:
    """Run the parts of a node with the embedded cluster, which start in the order below.

    The root must be prepared and locked. Only the process's limit of open files is changed, so that a process can have
    several nodes. `opened` is called once the store has been read."""
    membership.embed(config.root)
    settings = replace(config.store, collect_garbage="garbage-collector" in config.controllers)
    kinds, rules = (*BUILT_IN, DEFINITION), Rules(_check_selector, _selector_work)
    async with open_store(config.root / root.DATABASE, settings, clock, kinds=kinds, rules=rules) as store:
        log.info("store opened", extra=facts(path=config.root / root.DATABASE, version=store.version))
        opened()
        root.lay_out(config.root)
        metrics = Registry()
        node = NodeAgent(store, config, clock, metrics)
        quarantine = node.quarantine
        namespaces = NamespaceController(
            store,
            store.catalogue,
            clock,
            namespace_controller.Settings(
                default_service_accounts="serviceaccount" in config.controllers,
                finalize="namespace" in config.controllers,
            ),
            quarantine,
        )
        definitions = CustomResourceController(store, store.catalogue, clock, quarantine)
        files = [root_upkeep.CheckedFile(config.root / file.name, store.check_files) for file in store.files]
        async with (
            root_upkeep.kept(config.root, node.upkeep, *files),
            running(definitions.run),
            running(namespaces.run),
            serving(store, config, clock, views=node.views, metrics=metrics, checks=node.checks(), upkeep=node.upkeep),
            node.running(),  # before the scheduler: drivers of the previous run must not count as registered
            _node_lifecycle(store, config, clock, quarantine),
            _control(store, config, clock, metrics, quarantine),
        ):
            yield Embedded(store, node)


@asynccontextmanager
async def _control(
    cluster: Cluster, config: Config, clock: Clock, metrics: Registry, quarantine: Quarantine
) -> AsyncIterator[None]:
    """Run the configured control loops without delaying the start.

    The allocator and the compiler take long to import, so a thread imports them while the node already serves."""
    wanted = config.controllers & frozenset(controllers.CONTROL)
    if not wanted:
        yield
        return

    async def run() -> None:
        load = partial(import_module, "devlet.daemon.control")
        control = await to_thread.run_sync(load, abandon_on_cancel=True)  # a stop does not wait for it
        loops = control.ControlLoops(
            cluster,
            clock,
            metrics,
            controllers=wanted,
            host=config.node_name,
            all_placed=True,
            quarantine=quarantine,
        )
        await loops.run()

    async with create_task_group() as tasks:
        tasks.start_soon(run)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _node_lifecycle(
    cluster: Cluster, config: Config, clock: Clock, quarantine: Quarantine
) -> AsyncIterator[None]:
    if controllers.NODE_LIFECYCLE not in config.controllers:
        yield
        return
    async with running(NodeLifecycle(cluster, clock, quarantine=quarantine).run):
        yield


def parts_of(config: Config) -> Parts:
    """Return the parts for a node of the embedded cluster, or of the cluster that a kubeconfig names."""
    if config.kubeconfig is None:
        return embedded
    from devlet.daemon.joined import joined  # imports an HTTP client, which the embedded cluster does not need

    return joined


def _tune_garbage_collection() -> None:
    """Collect garbage less often. A large slice consists of a thousand short-lived objects, and looking for cycles
    among them every 700 allocations takes a sixth of a write (bench/store.py --gc)."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def run(config: Config, parts: Parts = embedded, on_ready: Callable[[], None] = lambda: None) -> None:
    """Run the parts until SIGINT or SIGTERM. Raises InUse if another process runs on this root."""
    began = monotonic()
    root.prepare(config.root)
    root_format.check(config.root)  # before the lock: the lock file is part of the root as well
    notifier = sd_notify.from_environment(os.environ)
    stop = Stop(config.stop_timeout)
    with file_lock.held(config.root / root.LOCK_FILE):
        root_format.claim(config.root)
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
