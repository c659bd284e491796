"""Containers as the node sees them, whatever runtime runs them: how they are started, and what state they are in.

A restarted container is another run with a higher number. A runtime reports only the newest run. After a restart of
devlet, the number of a run is known from the pod's status.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from devlet.objects.identifiers import ContainerName, PodUID
from devlet.objects.types.container import Container
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.objects.types.pod import Pod

__all__ = ["COMPLETED", "ERROR", "LOST", "Config", "Exit", "Run", "Runtime", "reason_for"]

COMPLETED = "Completed"
ERROR = "Error"
LOST = "ContainerStatusUnknown"  # it ran, and how it ended is unknown
LOST_CODE = 137
LOST_MESSAGE = "The container could not be located when the pod was terminated"


class Config(Struct, frozen=True):
    """What a container gets besides its own spec. CDI devices are names such as `vendor.com/class=name`."""

    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    cdi_devices: tuple[str, ...] = ()


class Exit(Struct, frozen=True, gc=False):
    code: int
    finished_at: datetime
    reason: str
    message: str = ""

    @property
    def is_lost(self) -> bool:
        return self.reason == LOST


class Run(Struct, frozen=True):
    """`number` is 0 for the first run of a container. `ends_at` is set by runtimes that know it in advance."""

    id: str
    number: int
    started_at: datetime
    exit: Exit | None = None
    ends_at: datetime | None = None

    @property
    def is_running(self) -> bool:
        return self.exit is None


def reason_for(code: int) -> str:
    return COMPLETED if code == 0 else ERROR


def lost(at: datetime) -> Exit:
    return Exit(LOST_CODE, at, LOST, LOST_MESSAGE)


class Runtime(Protocol):
    @property
    def version(self) -> str:
        """The runtime version in the status of the Node: `name://version`."""
        ...

    async def recover(self, pods: Sequence[Pod]) -> None:
        """Restore the state from the pods of this node, as the cluster has them. Called once, before anything else."""
        ...

    async def runs(self, pod: Pod) -> Mapping[ContainerName, Run]:
        """Return the newest run of each container that was ever started. Runs that a reboot of the machine ended have
        the reason `LOST`."""
        ...

    async def start(self, pod: Pod, container: Container, number: int, config: Config | None) -> Run:
        """Start a container. InvalidInput means that this pod can never be started; any other error may be
        temporary."""
        ...

    async def stop(self, pod: Pod) -> None:
        """Stop all running containers of the pod, sidecars last. Idempotent."""
        ...

    async def forget(self, pod: PodUID) -> None:
        """Drop what is kept about a pod that has ended for good."""
        ...
