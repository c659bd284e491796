"""Assembles the DRA half of the node agent: drivers, claims, slices and health.

The parts need each other: the claim manager wakes pods when a claim changes, and pods read from the claim manager. They
are created one after the other, so later parts are passed to earlier ones as functions."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from devlet.cluster.client import Cluster
from devlet.daemon import feature_gates as gates
from devlet.daemon.config import Config
from devlet.kit.clock import Clock
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.node import slices
from devlet.node.claims import health_follower, health_status, manager
from devlet.node.claims.claim_reader import ClaimReader
from devlet.node.claims.claim_watch import ClaimWatch
from devlet.node.claims.health_follower import HealthFollower
from devlet.node.claims.manager import ClaimManager
from devlet.node.claims.metrics import ClaimMetrics, claims_in_use, contested_devices
from devlet.node.node_slices import NodeSlices
from devlet.node.reports import Report
from devlet.node.slices import SliceKeeper
from devlet.objects.claims.nodes import unusable_on
from devlet.objects.identifiers import DriverName, NodeName, PodUID
from devlet.objects.types.container import Container, ResourceStatus
from devlet.objects.types.pod import Pod
from devlet.plugins import dra_driver, kept_connection
from devlet.plugins.dra import Service
from devlet.plugins.dra_registry import DraRegistry
from devlet.serve.pod_resources import ClaimDevice, DynamicResource

__all__ = ["NodeClaims"]


class NodeClaims:
    """The DRA half of a node.

    `wake` is called for a pod that waits for a claim, `health_changed` for pods whose devices changed their health, and
    `drivers_changed` when the Node's annotation may change. `labels` returns the labels of the Node."""

    def __init__(
        self,
        cluster: Cluster,
        config: Config,
        clock: Clock,
        metrics: Registry,
        *,
        wake: Callable[[PodUID], None],
        health_changed: Callable[[frozenset[PodUID]], None],
        report: Callable[[Report], None],
        labels: Callable[[], Mapping[str, str] | None],
        drivers_changed: Callable[[], None],
    ) -> None:
        settings, name = config.node, NodeName(config.node_name)
        self._gates = settings.feature_gates
        observed = ClaimMetrics(metrics)
        self.drivers = DraRegistry(
            clock,
            dra_driver.Settings(call=settings.dra_call, connection=kept_connection.Settings(below=config.root)),
            legacy={DriverName(driver): Service(api) for driver, api in settings.legacy_drivers.items()},
            observe=observed.call_took,
        )
        self.watch = ClaimWatch(cluster, wake, clock)
        self.manager = ClaimManager(
            config.root,
            self.drivers,
            ClaimReader(cluster).read_claim,
            clock,
            manager.Settings(
                extended=self._gates[gates.DRA_EXTENDED_RESOURCE],
                workloads=self._gates[gates.DRA_WORKLOAD_RESOURCE_CLAIMS],
            ),
            report=report,
            observe=observed.operation_took,
            watch=self.watch.watch,
            wake=wake,
            misplaced=lambda claim: unusable_on(claim, name, labels()),
        )
        observed.show_in_use(lambda: claims_in_use(self.manager.records()))
        observed.show_contested(lambda: contested_devices(self.manager.waits()))
        delays = slices.Settings(delay=settings.slice_wipe_delay)
        self.keeper = SliceKeeper(cluster, name, self.drivers, clock, delays, on_change=drivers_changed)
        self.slices = NodeSlices(cluster, name, self.keeper)
        self.health = HealthFollower(
            self.drivers,
            config.root,
            clock,
            health_follower.Settings(retry=settings.health_retry, timeout=settings.health_validity),
            users=self.manager.users,
            on_change=health_changed,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the parts. They are ready once it is known what was prepared before; then drivers may register."""
        async with running(self.drivers.run), running(self.manager.run), running(self.watch.run):
            if not self._gates[gates.RESOURCE_HEALTH_STATUS]:
                yield
                return
            async with running(self.health.run):
                yield

    def statuses(self, pod: Pod, container: Container) -> tuple[ResourceStatus, ...]:
        """Return the health of the devices that a container has through claims."""
        if not self._gates[gates.RESOURCE_HEALTH_STATUS]:
            return ()
        return health_status.statuses(
            self.manager.container_claims(pod, container),
            self.health.health,
            messages=self._gates[gates.RESOURCE_HEALTH_STATUS_MESSAGE],
            resources=health_status.extended_resources(pod, container.name),
        )

    def dynamic_resources(self, pod: Pod, container: Container) -> list[DynamicResource]:
        """Return a container's claims for PodResources: each claim once, with the devices for this container."""
        found: dict[tuple[str, str], dict[ClaimDevice, None]] = {}
        for claim in self.manager.container_claims(pod, container):
            devices = found.setdefault((claim.key.name, claim.key.namespace), {})
            for part in claim.drivers:
                for each in part.devices or ():
                    cdi = each.cdi_devices or ()
                    devices[ClaimDevice(part.driver, each.pool, each.device, cdi, each.share)] = None
        return [DynamicResource(name, namespace, tuple(devices)) for (name, namespace), devices in found.items()]
