"""The control loops as a separate program for another cluster.

The scheduler has one lease and the controllers have another, so that several programs can share the work. A program
that acquires a lease creates new loops, which start from the current state of the cluster, and drops them when it loses
the lease.
"""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aiohttp import web

from devlet.cluster.client import Cluster
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.control import leader_election
from devlet.control.leader_election import LeaderElection, unique_identity
from devlet.daemon import controllers
from devlet.daemon.api_server import connection_of, until_answered
from devlet.daemon.control import ControlLoops
from devlet.errors import NotFound
from devlet.kit import sd_notify
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.facts import facts
from devlet.kit.metrics import CONTENT_TYPE, Registry
from devlet.kit.parts import running
from devlet.kit.stopping import Stop
from devlet.objects.kinds import DEVICE_TAINT_RULES, RESOURCE_CLAIMS
from devlet.serve.kube_api import server

__all__ = ["LEASES", "ControlConfig", "run"]

log = logging.getLogger(__name__)

# Lease → the loops that its holder runs.
LEASES = {
    "devlet-scheduler": frozenset({controllers.SCHEDULER}),
    "devlet-controllers": frozenset({controllers.RESOURCE_CLAIM, controllers.TAINT_EVICTION}),
}


@dataclass(frozen=True, slots=True)
class ControlConfig:
    kubeconfig: Path
    host: str  # the reporter of events, and the prefix of the holder of leases
    context: str = ""
    controllers: frozenset[str] = frozenset({controllers.SCHEDULER})
    scheduler_names: frozenset[str] = frozenset({"devlet"})
    leader_elect: bool = True
    election: leader_election.Settings = field(default=leader_election.Settings())
    qps: float = 0.0  # requests per second; 0 means no limit
    metrics_address: tuple[str, int] | None = None
    stop_timeout: float = 10.0  # seconds


async def run(config: ControlConfig, on_ready: Callable[[str], None] = lambda _: None) -> None:
    """Run until SIGINT or SIGTERM. `on_ready` is called with the state, once a leader is known."""
    notifier, stop = sd_notify.from_environment(os.environ), Stop(config.stop_timeout)
    async with running(stop.listen), running(notifier.watchdog):
        with stop.scope:
            async with _parts(config) as state:
                log.info("ready", extra=facts(state=state))
                notifier.ready()
                on_ready(state)
                await stop.asked()
                notifier.stopping()
    stop.check()
    log.info("stopped")


@asynccontextmanager
async def _parts(config: ControlConfig) -> AsyncIterator[str]:
    connection, clock = connection_of(config.kubeconfig, config.context), SystemClock()
    async with connected(connection, Settings(qps=config.qps), clock) as cluster, AsyncExitStack() as stack:
        metrics = _Metrics()
        if config.metrics_address is not None:
            tcp = server.bind_tcp(*config.metrics_address)
            await stack.enter_async_context(server.listening(metrics.handle, tcp, tls=None))
        rules = await until_answered(partial(_has_rules, cluster), connection.address, clock)
        process = _Process(config, cluster, clock, metrics, rules=rules)
        yield ", ".join([await stack.enter_async_context(process.running(lease)) for lease in _leases(config)])


def _leases(config: ControlConfig) -> list[str]:
    return [lease for lease, loops in LEASES.items() if loops & config.controllers]


async def _has_rules(cluster: RemoteCluster) -> bool:
    """Return whether the API serves device taint rules. Raises NotFound if it does not serve claims."""
    if RESOURCE_CLAIMS.plural not in await cluster.discovery.resources(RESOURCE_CLAIMS.api_version):
        raise NotFound(f"the cluster does not serve {RESOURCE_CLAIMS.api_version}: Kubernetes 1.34 or newer is needed")
    return DEVICE_TAINT_RULES.plural in await cluster.discovery.resources(DEVICE_TAINT_RULES.api_version)


class _Process:
    def __init__(
        self, config: ControlConfig, cluster: Cluster, clock: Clock, metrics: "_Metrics", *, rules: bool
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._clock = clock
        self._metrics = metrics
        self._rules = rules
        self._identity = unique_identity(config.host)
        self._status = metrics.own.gauge("leader_election_master_status", "Whether this process leads.", ("name",))

    @asynccontextmanager
    async def running(self, lease: str) -> AsyncIterator[str]:
        """Run the loops of a lease. Once a leader is known, yield the state in words."""
        wanted = LEASES[lease] & self._config.controllers
        work = ",".join(name for name in controllers.CONTROL if name in wanted)
        if not self._config.leader_elect:
            async with running(self._loops(lease, self._cluster).run):
                yield f"{work} runs"
            return
        election = self._election(lease)
        async with running(partial(election.lead, self._part(lease))):
            leads = election.holder == self._identity
            yield f"{work} leads" if leads else f"{work} waits: {election.holder or 'nobody'} leads"

    def _election(self, lease: str) -> LeaderElection:
        self._status.set(0, lease)
        return LeaderElection(
            self._cluster,
            self._clock,
            lease,
            self._identity,
            self._config.election,
            changed=lambda leader: self._status.set(leader == self._identity, lease),
        )

    def _part(self, lease: str) -> Callable[[Cluster], Awaitable[None]]:
        return lambda cluster: self._loops(lease, cluster).run()

    def _loops(self, lease: str, cluster: Cluster) -> ControlLoops:
        return ControlLoops(
            cluster,
            self._clock,
            self._metrics.of(lease),
            controllers=LEASES[lease] & self._config.controllers,
            host=self._config.host,
            scheduler_names=self._config.scheduler_names,
            rules=self._rules,
        )


class _Metrics:
    """The metrics of the process, and of the latest loops for each lease."""

    def __init__(self) -> None:
        self.own = Registry()
        self._loops: dict[str, Registry] = {}

    def of(self, lease: str) -> Registry:
        """Return an empty registry for new loops of a lease."""
        self._loops[lease] = Registry()
        return self._loops[lease]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in ("/healthz", "/livez", "/readyz"):
            return web.Response(text="ok")
        if request.path != "/metrics":
            return web.Response(text="404 page not found\n", status=404)
        text = "".join(registry.text() for registry in (self.own, *self._loops.values()))
        return web.Response(text=text, headers={"Content-Type": CONTENT_TYPE})
