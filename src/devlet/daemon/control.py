"""Assembles the control loops, which share one copy of the cluster's objects.

If several programs may run them, their cluster must refuse writes once they no longer lead
(`control.leader_election`).
"""

import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster
from devlet.cluster.events import Recorder
from devlet.cluster.quarantine import Quarantine
from devlet.control.claims.controller import ClaimController
from devlet.control.informers import Informers
from devlet.control.scheduler.scheduler import Scheduler
from devlet.control.scheduler.settings import Settings as SchedulerSettings
from devlet.control.taints.controller import Settings as TaintSettings
from devlet.control.taints.controller import TaintController
from devlet.daemon import controllers as names
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.metrics import Registry
from devlet.kit.parts import running

__all__ = ["ControlLoops"]

log = logging.getLogger(__name__)

Part = Callable[..., Coroutine[Any, Any, None]]


class ControlLoops:
    """The control loops named in `controllers`, which can be run once.

    With `all_placed`, claims of pods that are bound to a node are allocated whatever scheduler the pods name. `rules`
    means that the API serves device taint rules, and `workloads` that pods may have claims through their pod group.
    A `quarantine` is created if none is given."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        metrics: Registry,
        *,
        controllers: frozenset[str],
        host: str,
        scheduler_names: frozenset[str] = SchedulerSettings().names,
        all_placed: bool = False,
        rules: bool = True,
        workloads: bool = False,
        quarantine: Quarantine | None = None,
    ) -> None:
        self._recorders: list[Recorder] = []
        if quarantine is None:
            self._recorders.append(Recorder(cluster, "devlet-control", host, clock))
            quarantine = Quarantine(self._recorders[0].record)
        self._informers = Informers(cluster, rules=rules, quarantine=quarantine)
        self._parts: dict[str, Part] = {}

        def shared(component: str) -> tuple[Cluster, Informers, Recorder, Clock, Registry]:
            self._recorders.append(Recorder(cluster, component, host, clock))
            return cluster, self._informers, self._recorders[-1], clock, metrics

        if names.RESOURCE_CLAIM in controllers:
            self._parts[names.RESOURCE_CLAIM] = ClaimController(*shared("resource_claim")).run
        if names.TAINT_EVICTION in controllers:
            settings = TaintSettings(workloads=workloads)
            self._parts[names.TAINT_EVICTION] = TaintController(
                *shared("device-taint-eviction-controller"), settings
            ).run
        if names.SCHEDULER in controllers:
            wanted = SchedulerSettings(names=scheduler_names, all_placed=all_placed)
            self._parts[names.SCHEDULER] = Scheduler(*shared("devlet-scheduler"), wanted).run

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the loops. They are ready once all objects are known and the loops have started."""
        async with AsyncExitStack() as stack:
            for recorder in self._recorders:
                await stack.enter_async_context(running(recorder.run))
            await stack.enter_async_context(self._informers.running())
            for part in self._parts.values():
                await stack.enter_async_context(running(part))
            log.info("control loops started", extra=facts(controllers=",".join(self._parts)))
            task_status.started()
            await anyio.sleep_forever()
