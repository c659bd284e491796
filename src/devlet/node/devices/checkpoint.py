"""The device manager's checkpoint: the allocations and registered resources, restored at the start and saved after each
change.

A damaged file is renamed, reported, and treated as missing: no device is allocatable before its plugin lists it. Then
the allocations of running pods are learned from their statuses.
"""

import logging
from collections.abc import Callable, Sequence

from anyio import to_thread

from devlet.errors import StateCorrupt
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.node.devices import limits
from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.node.devices.inventory import Inventory, Moment
from devlet.node.reports import Report
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import ContainerStatus
from devlet.objects.types.pod import Pod
from devlet.plugins import grants
from devlet.state import device_checkpoint, device_entry
from devlet.state.checkpoint_file import CheckpointFile, GroupSaver
from devlet.state.device_checkpoint import Encoder, Entry

__all__ = ["Checkpoint", "CheckpointContent", "learned"]

log = logging.getLogger(__name__)

_CLAIM = "claim:"  # the prefix of the statuses of claims, which are not devices of plugins


class CheckpointContent:
    """Converts the allocations and the registered resources to the file and back. Entries are in the order of the
    allocations. Each allocation keeps its entry, so each is encoded once."""

    def __init__(self, inventory: Inventory, allocations: Allocations) -> None:
        self._inventory = inventory
        self._allocations = allocations
        self._encoder = Encoder()

    def encode(self) -> bytes:
        registered: dict[str, Sequence[str]] = {str(name): ids for name, ids in self._inventory.registered().items()}
        return self._encoder.encode(self._allocations.entries(), registered)

    def restore(self, blob: bytes, now: Moment) -> list[str]:
        """Return why entries, or some of their devices, had to be dropped. If nothing can be read, raise StateCorrupt
        and change nothing."""
        found = device_entry.validated(device_checkpoint.decode(blob))
        self._inventory.restore((ResourceName(name) for name in found.checkpoint.registered or ()), now)
        problems = [self._restore(entry) for entry in found.checkpoint.entries or ()]
        return [*found.faults, *filter(None, problems)]

    def _restore(self, entry: Entry) -> str | None:
        try:
            allocation = _allocation(entry)
        except StateCorrupt as e:
            return f"pod {entry.pod}, container {entry.container}, {entry.resource}: {e}"
        if allocation.devices and self._allocations.get(*allocation.key) is None:
            self._allocations.add(allocation)
        return None


def _allocation(entry: Entry) -> Allocation:
    by_node = {node: tuple(map(DeviceID, ids or ())) for node, ids in (entry.devices or {NO_NODE: ()}).items()}
    grant = None if entry.response is None else grants.decode(entry.response)
    return Allocation(PodUID(entry.pod), ContainerName(entry.container), ResourceName(entry.resource), by_node, grant)


class Checkpoint:
    """`existed` is True if there was an intact file at the start; `damage` names the damaged files that were kept.
    `saver` writes the file while its `run` runs."""

    def __init__(
        self, file: CheckpointFile, content: CheckpointContent, clock: Clock, report: Callable[[Report], None]
    ) -> None:
        self._file = file
        self._content = content
        self._clock = clock
        self._report = report
        self.saver = GroupSaver(file, content.encode, clock=clock)
        self.existed = False
        self.damage: tuple[str, ...] = ()

    async def restore(self) -> None:
        """Read the file into the inventory and the allocations."""
        await to_thread.run_sync(self._file.prepare)
        try:
            blob = await to_thread.run_sync(self._file.read)
            if blob is not None:
                now = Moment(self._clock.now(), self._clock.monotonic())
                self._report_dropped(self._content.restore(blob, now))
            self.existed = blob is not None
        except StateCorrupt as e:
            await self._set_aside(e)
        aside = await to_thread.run_sync(self._file.set_aside_files)
        self.damage = tuple(f"{path} was damaged and set aside" for path in aside)

    async def _set_aside(self, error: StateCorrupt) -> None:
        path = await to_thread.run_sync(self._file.set_aside, self._clock.now())
        repair = f"devlet checkpoint repair {path} --output {self._file.path} --force"
        message = (
            f"{error}; kept as {path}. What running pods hold is taken from their statuses; or stop devlet and {repair}"
        )
        log.error("checkpoint damaged", extra=facts(path=path, err=error))
        self._report(Report("Warning", "DeviceCheckpointDamaged", message))

    def _report_dropped(self, problems: Sequence[str]) -> None:
        for problem in problems:
            log.error("checkpoint entry dropped", extra=facts(err=problem))
            message = f"an entry of {self._file.path.name} was dropped: {problem}"
            self._report(Report("Warning", "DeviceCheckpointDamaged", message))


def learned(pod: Pod) -> list[Allocation]:
    """Return the allocations that the pod's status contains."""
    status = pod.status
    return [
        allocation
        for container in (*status.init_container_statuses, *status.container_statuses)
        for allocation in _of_container(pod, container)
    ]


def _of_container(pod: Pod, status: ContainerStatus) -> list[Allocation]:
    """Return nothing for a terminated container, nor for extended resources that are satisfied by a claim."""
    if status.state.terminated:
        return []
    claimed = limits.claimed(pod)
    return [
        Allocation(
            pod.uid,
            status.name,
            ResourceName(each.name),
            {NO_NODE: tuple(DeviceID(device.resource_id) for device in each.resources)},
            None,
        )
        for each in status.allocated_resources_status
        if each.resources and not each.name.startswith(_CLAIM) and (status.name, ResourceName(each.name)) not in claimed
    ]
