"""What a pod's worker works with: the parts of the node, as far as it needs them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anyio import CapacityLimiter

from devlet.cluster.client import Cluster
from devlet.cluster.events import Recorder
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.node import admission
from devlet.node.admission import Admission
from devlet.node.devices.container_options import ContainerOptions
from devlet.node.pods import lifecycle
from devlet.objects.container import Container, ResourceStatus
from devlet.objects.identifiers import ContainerName, PodUID, ResourceName
from devlet.objects.pod import Pod
from devlet.runtime.containers import Runtime

__all__ = ["Devices", "Parts", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    at_once: int = 1024  # pods that are admitted or started at the same time; plugins have limits of their own
    retry: Backoff = field(default=Backoff(0.2, 30.0))  # for a pod's worker that failed
    look_again: float = 10.0  # seconds between two looks at a plugin that is awaited
    clean_up: float = 10.0  # seconds that new pods wait at the start for what ended pods still hold
    restarts: lifecycle.Settings = field(default=lifecycle.Settings())


class Devices(admission.Devices, Protocol):
    """The device manager."""

    def awaited(self, pod: Pod) -> Sequence[ResourceName]: ...

    async def changed(self) -> None: ...

    async def start(self, pod: Pod, container: Container) -> ContainerOptions | None: ...

    def statuses(self, pod: PodUID, container: ContainerName) -> Sequence[ResourceStatus]: ...

    async def release(self, pod: PodUID) -> None: ...

    async def retain(self, pods: Collection[PodUID]) -> None: ...

    def learn(self, pods: Iterable[Pod]) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    cluster: Cluster
    devices: Devices
    admission: Admission
    runtime: Runtime
    recorder: Recorder
    clock: Clock
    limiter: CapacityLimiter
    settings: Settings
