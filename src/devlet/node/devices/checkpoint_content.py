"""The content of the device manager's checkpoint: the allocations and the registered resources as entries, and back."""

from collections.abc import Sequence

from devlet.errors import StateCorrupt
from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.node.devices.inventory import Inventory, Moment
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins import grants
from devlet.state import device_checkpoint, device_faults
from devlet.state.device_checkpoint import Encoder, Entry

__all__ = ["CheckpointContent"]


class CheckpointContent:
    """Entries are in the order of the allocations. Each allocation keeps its entry, so each is encoded once."""

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
        found = device_faults.sound(device_checkpoint.decode(blob))
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
