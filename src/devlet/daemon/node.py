"""Assembles the node agent: device manager, claims, plugin sockets, pods, Node object and lease, PodResources.

At the start, the agent first loads who held which devices, then the pods, and then what the node has; only after that
may plugins register. The registration socket is created last, because plugins register as soon as it appears. Sockets
that plugins have left behind are removed before.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from devlet.cluster.client import Cluster
from devlet.cluster.events import WARNING, Recorder
from devlet.cluster.quarantine import Quarantine
from devlet.daemon.config import Config
from devlet.daemon.node_claims import NodeClaims
from devlet.daemon.node_settings import NodeSettings
from devlet.daemon.root import CDI, DEVICE_PLUGINS, POD_RESOURCES, REGISTRY
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.kit.kept_files import KeptFile
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.kit.upkeep import Kept, Upkeep
from devlet.node import host, node_status, views
from devlet.node.devices import manager, release_hooks
from devlet.node.devices.manager import DeviceManager
from devlet.node.lease import NodeLease
from devlet.node.metrics import DeviceMetrics, TopologyCounters, show_name, show_plugins
from devlet.node.node_status import NodeStatus
from devlet.node.pods import parts
from devlet.node.pods.manager import PodManager
from devlet.node.reports import Report
from devlet.node.static_pods.directory import ManifestDirectory
from devlet.node.static_pods.pods import StaticPods
from devlet.node.topology import machine
from devlet.node.topology.machine import Machine
from devlet.node.topology.manager import TopologyManager
from devlet.objects.identifiers import NodeName, PodUID
from devlet.plugins import device_plugin, registration, registration_client
from devlet.plugins.device_plugin_handler import TYPE as DEVICE_PLUGIN
from devlet.plugins.device_plugin_handler import DevicePluginHandler
from devlet.plugins.dra_registry import TYPE as DRA_DRIVER
from devlet.plugins.refusals import Refusal, Refusals
from devlet.plugins.registration import Handler, PluginWatcher
from devlet.plugins.registration_server import RegistrationServer, remove_sockets
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.spec_dir import DEFAULT_DIRECTORIES
from devlet.runtime.none import STATE_FILE, NoneRuntime
from devlet.serve.kube_api.health import HEALTHY, Check
from devlet.serve.pod_resources import PodResourcesMetrics, PodResourcesServer
from devlet.state import device_checkpoint

__all__ = ["NodeAgent"]

log = logging.getLogger(__name__)

COMPONENT = "devlet"


@dataclass(frozen=True, slots=True)
class _Directories:
    device_plugins: Path
    registry: Path
    pod_resources: Path


class NodeAgent:
    """The node agent, which exists before `running` starts it, so that the API can show its views."""

    def __init__(self, cluster: Cluster, config: Config, clock: Clock, metrics: Registry) -> None:
        settings = config.node
        name = NodeName(config.node_name)
        self._directories = _directories(config.root)
        self._serves = False
        self._early_reports: list[Report] | None = []
        self.upkeep = Upkeep(config.root)
        self._host = host.read(config.root)
        where = _machine(settings)
        counters = DeviceMetrics(metrics)
        self.recorder = Recorder(cluster, COMPONENT, config.node_name, clock)
        self.quarantine = Quarantine(self.recorder.record, metrics)
        self.devices = DeviceManager(
            self._directories.device_plugins,
            clock,
            _device_settings(settings, config.root),
            machine_nodes=where.nodes,
            hooks=release_hooks.parse(settings.release_hooks, timeout=settings.release_hook),
            on_health=self._health_changed,
            report=self._report,
            observe_allocation=counters.allocation_took,
        )
        self.claims = NodeClaims(
            cluster,
            config,
            clock,
            metrics,
            wake=self._claim_changed,
            health_changed=self._health_changed,
            report=self._report,
            labels=lambda: self.status.labels,
            drivers_changed=lambda: self.status.refresh(),
        )
        address = settings.node_ip or (host.LOOPBACK if config.kubeconfig is None else host.address())
        capacity = node_status.Settings(address=address, max_pods=settings.max_pods)
        specs = Cache((*DEFAULT_DIRECTORIES, config.cdi_root or config.root / CDI))
        self._runtime_state = config.root / STATE_FILE
        runtime = NoneRuntime(clock, self._host.boot_id, self._runtime_state, cdi=specs)
        self.status = NodeStatus(
            cluster,
            name,
            self.devices,
            self._host,
            runtime.version,
            self.recorder,
            clock,
            capacity,
            damage=lambda: (*self.devices.damage, *self.claims.manager.damage),
            annotations=self.claims.keeper.annotations,
        )
        self.lease = NodeLease(cluster, name, lambda: self.status.uid, clock)
        topology = TopologyManager(
            settings.topology_policy,
            settings.topology_scope,
            settings.topology_options,
            where,
            TopologyCounters(metrics),
            clock=clock,
        )
        self.pods = PodManager(
            cluster,
            name,
            self.devices,
            self.claims.manager,
            topology,
            runtime,
            self.recorder,
            clock,
            pod_settings(settings, address),
            node=self.status.node,
            claim_health=self.claims.statuses,
            static=self._static_pods(cluster, name, settings.static_pod_path, clock),
            quarantine=self.quarantine,
        )
        refusals = Refusals(clock, self._refused)
        self.views = views.NodeViews(
            self.devices,
            self.pods,
            claims=self.claims.manager,
            drivers=self.claims.drivers,
            slices=self.claims.slices,
            runtime=runtime,
            refusals=refusals.records,
        )
        self.registration = RegistrationServer(
            self._directories.device_plugins,
            self.devices.register,
            count=counters.registration_requested,
            refusals=refusals,
        )
        handlers: dict[str, Handler] = {
            DEVICE_PLUGIN: DevicePluginHandler(self.devices.register, self.devices.deregister),
            DRA_DRIVER: self.claims.drivers,
        }
        self.watcher = PluginWatcher(
            self._directories.registry,
            handlers,
            clock=clock,
            refusals=refusals,
            settings=registration.Settings(client=registration_client.Settings(below=config.root)),
        )
        show_plugins(metrics, self.watcher.plugins)
        show_name(metrics, config.node_name)
        self.pod_resources = PodResourcesServer(
            self._directories.pod_resources,
            self.pods,
            self.devices,
            PodResourcesMetrics(metrics),
            clock,
            dynamic=self.claims.dynamic_resources,
        )

    def checks(self) -> list[Check]:
        """Return the health checks of the node. It is ready while pods are served and plugins may register."""
        return [
            Check("root", self.upkeep.problem, HEALTHY),
            Check("device-plugin", self.registration.health, HEALTHY),
            Check("checkpoints", self._unwritten, HEALTHY),
            Check("node", lambda: None if self._serves else "the node is starting or stopping", ("readyz",)),
        ]

    def _unwritten(self) -> str | None:
        return self.devices.checkpoint.problem or self.claims.manager.checkpoint.problem

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the parts. They are ready once pods are served and plugins may register."""
        await anyio.to_thread.run_sync(remove_sockets, self._directories.device_plugins, (device_checkpoint.FILE_NAME,))
        async with (
            running(self.recorder.run),
            running(self.devices.run),
            self.claims.running(),
            running(self.status.run),
            running(self.lease.run),
        ):
            self._send_early_reports()
            async with (
                running(self.pods.run),
                running(self.pod_resources.run),
                running(self.watcher.run),
                running(self.registration.run),
                running(
                    self.claims.keeper.run
                ),  # stops first, so that drivers disconnected by the stop do not count as gone
            ):
                with self.upkeep.keeping(*await self._kept()):
                    self._serves = True
                    try:
                        yield
                    finally:
                        self._serves = False

    async def _kept(self) -> list[Kept]:
        state = await anyio.to_thread.run_sync(KeptFile, self._runtime_state)
        checkpoints = (self.devices.checkpoint, self.claims.manager.checkpoint)
        return [self.registration.socket, self.pod_resources.socket, *checkpoints, state]

    def _static_pods(self, cluster: Cluster, name: NodeName, path: Path | None, clock: Clock) -> StaticPods:
        files = ManifestDirectory(path, name, clock, self._report) if path is not None else None
        return StaticPods(cluster, name, self.recorder, clock, files, owner=lambda: self.status.uid)

    def _health_changed(self, pods: frozenset[PodUID]) -> None:
        self.pods.health_changed(pods)

    def _refused(self, refusal: Refusal) -> None:
        what = refusal.type if refusal.type in (DEVICE_PLUGIN, DRA_DRIVER) else "Plugin"
        where = f" at {refusal.socket}" if refusal.socket else ""
        message = f"plugin {refusal.name or 'without a name'}{where} could not be registered: {refusal.message}"
        self._report(Report(WARNING, f"{what}RegistrationFailed", message))

    def _claim_changed(self, pod: PodUID) -> None:
        self.pods.claim_changed(pod)

    def _send_early_reports(self) -> None:
        """Send the reports from before the Node object was known, to which events refer."""
        early, self._early_reports = self._early_reports or (), None
        for report in early:
            self._report(report)

    def _report(self, report: Report) -> None:
        if self._early_reports is not None:
            self._early_reports.append(report)
            return
        self.recorder.record(self.status.reference, report.type, report.reason, report.message)


def _directories(root: Path) -> _Directories:
    return _Directories(root / DEVICE_PLUGINS, root / REGISTRY, root / POD_RESOURCES)


def _machine(settings: NodeSettings) -> Machine:
    return machine.simulated(settings.numa_nodes) if settings.numa_nodes else machine.read()


def _device_settings(settings: NodeSettings, root: Path) -> manager.Settings:
    calls = device_plugin.Settings(
        dial=settings.plugin_dial,
        options=settings.plugin_options,
        allocate=settings.plugin_allocate,
        preferred=settings.plugin_preferred,
        pre_start=settings.plugin_pre_start,
        below=root,
    )
    return manager.Settings(grace=settings.plugin_grace, plugin=calls)


def pod_settings(settings: NodeSettings, address: str) -> parts.Settings:
    prepare = Backoff(settings.prepare_retry, max(60.0, settings.prepare_retry))
    return parts.Settings(address=address, reconcile=settings.claim_reconcile, prepare=prepare)
