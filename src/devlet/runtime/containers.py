"""What the node knows of containers, whatever runs them: how they are started, and how they are.

A container that was started again is another run with a higher number; a runtime tells of the newest run only. What a
run's number was before a restart of devlet stands in the pod's status.
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
LOST = "ContainerStatusUnknown"  # it ran, and nobody can say what became of it
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
    """`number` is 0 for the first run of a container. `ends_at` is for runtimes that know it beforehand."""

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
        """For the Node object: `name://version`."""
        ...

    async def recover(self, pods: Sequence[Pod]) -> None:
        """Before anything else, once: the pods of this node as the cluster knows them."""
        ...

    async def runs(self, pod: Pod) -> Mapping[ContainerName, Run]:
        """The newest run of each container that was ever started. Those that did not survive a restart of the machine
        have ended with reason `LOST`."""
        ...

    async def start(self, pod: Pod, container: Container, number: int, config: Config | None) -> Run:
        """InvalidInput if this pod can never be started as it is; any other error may pass."""
        ...

    async def stop(self, pod: Pod) -> None:
        """End all containers of the pod that still run, sidecars last. Idempotent."""
        ...

    async def forget(self, pod: PodUID) -> None:
        """The pod has ended for good."""
        ...
