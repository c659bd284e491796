"""The checkpoint of the device manager: holdings and registered resources as its entries, and back."""

from collections.abc import Sequence

from devlet.errors import StateCorrupt
from devlet.node.devices.holdings import NO_NODE, Holding, Holdings
from devlet.node.devices.inventory import Inventory, Moment
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins import grants
from devlet.state import device_checkpoint, device_faults
from devlet.state.device_checkpoint import Encoder, Entry

__all__ = ["Book"]


class Book:
    """Entries come in the order in which holdings were made. Each holding keeps its entry, so each is encoded once."""

    def __init__(self, inventory: Inventory, holdings: Holdings) -> None:
        self._inventory = inventory
        self._holdings = holdings
        self._encoder = Encoder()

    def content(self) -> bytes:
        registered: dict[str, Sequence[str]] = {str(name): ids for name, ids in self._inventory.registered().items()}
        return self._encoder.encode(self._holdings.entries(), registered)

    def restore(self, blob: bytes, now: Moment) -> list[str]:
        """Why entries, or devices of them, had to be dropped. StateCorrupt if nothing can be read; then nothing has
        changed."""
        found = device_faults.sound(device_checkpoint.decode(blob))
        self._inventory.restore((ResourceName(name) for name in found.checkpoint.registered or ()), now)
        problems = [self._restore(entry) for entry in found.checkpoint.entries or ()]
        return [*found.faults, *filter(None, problems)]

    def _restore(self, entry: Entry) -> str | None:
        try:
            holding = _holding(entry)
        except StateCorrupt as e:
            return f"pod {entry.pod}, container {entry.container}, {entry.resource}: {e}"
        if holding.devices and self._holdings.get(*holding.key) is None:
            self._holdings.add(holding)
        return None


def _holding(entry: Entry) -> Holding:
    by_node = {node: tuple(map(DeviceID, ids or ())) for node, ids in (entry.devices or {NO_NODE: ()}).items()}
    grant = None if entry.response is None else grants.decode(entry.response)
    return Holding(PodUID(entry.pod), ContainerName(entry.container), ResourceName(entry.resource), by_node, grant)
