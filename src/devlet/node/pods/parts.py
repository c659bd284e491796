"""The parts of the node that the workers of pods use, reduced to what they need."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anyio import CapacityLimiter

from devlet.cluster.client import Cluster
from devlet.cluster.events import Recorder
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.node import admission
from devlet.node.admission import Admission
from devlet.node.claims.records import ClaimKey
from devlet.node.devices.container_options import ContainerOptions
from devlet.node.pods import container_plan
from devlet.objects.identifiers import ContainerName, PodUID, ResourceName
from devlet.objects.types.container import Container, ResourceStatus
from devlet.objects.types.pod import Pod
from devlet.runtime.containers import Runtime

__all__ = ["ClaimHealth", "Claims", "Devices", "Parts", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    address: str = ""  # of this node, for the status of pods; empty: it is left out
    at_once: int = 1024  # pods that are admitted or started at the same time; plugins have limits of their own
    retry: Backoff = field(default=Backoff(0.2, 30.0))  # after a step of a pod's life failed
    look_again: float = 10.0  # seconds between two looks at a plugin that a pod waits for
    clean_up: float = 10.0  # seconds that new pods wait at the start until the devices of former pods are released
    restarts: container_plan.Settings = field(default=container_plan.Settings())
    prepare: Backoff = field(default=Backoff(1.0, 60.0))  # claims, if no driver or claim changes
    unprepare: Backoff = field(default=Backoff(1.0, 30.0))
    preparing: float = 0.5  # seconds until the status says that claims are being prepared; most drivers are faster
    soonest: float = 0.1  # the least seconds between two attempts to prepare or unprepare a pod's claims
    reconcile: float = 60.0  # seconds between two searches for claims of pods that are gone


class Devices(admission.Devices, Protocol):
    """The device manager."""

    def pending_resources(self, pod: Pod) -> Sequence[ResourceName]: ...

    async def changed(self) -> None: ...

    async def start(self, pod: Pod, container: Container) -> ContainerOptions | None: ...

    def statuses(self, pod: PodUID, container: ContainerName) -> Sequence[ResourceStatus]: ...

    async def release(self, pod: PodUID) -> None: ...

    async def retain(self, pods: Collection[PodUID]) -> None: ...

    def learn(self, pods: Iterable[Pod]) -> None: ...


class Claims(Protocol):
    """The claim manager."""

    async def prepare(self, pod: Pod) -> None: ...

    async def unprepare(self, pod: PodUID) -> None: ...

    async def reconcile(self, keep: Collection[PodUID], spare: Collection[ClaimKey]) -> None: ...

    @property
    def version(self) -> int: ...

    async def changed(self, since: int) -> int: ...

    def is_prepared(self, pod: Pod) -> bool: ...

    def cdi_devices(self, pod: Pod, container: Container) -> tuple[str, ...]: ...


ClaimHealth = Callable[[Pod, Container], Sequence[ResourceStatus]]
"""Returns the health of the devices that a container has from claims."""


@dataclass(frozen=True, slots=True)
class Parts:
    cluster: Cluster
    devices: Devices
    claims: Claims
    claim_health: ClaimHealth
    admission: Admission
    runtime: Runtime
    recorder: Recorder
    clock: Clock
    limiter: CapacityLimiter
    settings: Settings
