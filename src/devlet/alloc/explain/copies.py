"""Copies of everything that concerns one node, to try what would happen if something changed. The original is not
modified."""

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from devlet.alloc.allocator import Allocator
from devlet.alloc.inventory import Inventory, PoolKey, SliceEntry
from devlet.objects.identifiers import NodeName
from devlet.objects.types.claim import DeviceResult
from devlet.objects.types.slice import ResourceSlice

__all__ = ["Difference", "copy_for"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A change of the inventory. `released` are claims (namespace and name) that give up their devices; `complete` is a
    pool treated as if no slice were missing."""

    released: Collection[tuple[str, str]] = ()
    complete: PoolKey | None = None


def copy_for(allocator: Allocator, node: NodeName, difference: Difference) -> Allocator:
    """Return an allocator that answers for this node as the original would if the difference were applied."""
    original = allocator.inventory
    slices = {entry.name: entry for entry in original.slices_for(node)}
    for key in {entry.pool for entry in slices.values()}:
        slices.update((entry.name, entry) for entry in original.slices_of(key))
    inventory = Inventory(
        (_slice(original, entry, difference.complete) for entry in slices.values()), original.classes.values()
    )
    for claim, results in _holdings(original, slices.values()).items():
        if claim not in difference.released:
            inventory.hold_devices(*claim, results)
    return Allocator(inventory, allocator.features, allocator.rules)


def _slice(inventory: Inventory, entry: SliceEntry, complete: PoolKey | None) -> ResourceSlice:
    if entry.pool != complete:
        return entry.slice
    newest = max(each.generation for each in inventory.slices_of(entry.pool))
    count = sum(each.generation == newest for each in inventory.slices_of(entry.pool))
    pool = msgspec.structs.replace(entry.slice.spec.pool, resource_slice_count=count)
    return msgspec.structs.replace(entry.slice, spec=msgspec.structs.replace(entry.slice.spec, pool=pool))


def _holdings(inventory: Inventory, slices: Collection[SliceEntry]) -> dict[tuple[str, str], list[DeviceResult]]:
    held: dict[tuple[str, str], list[DeviceResult]] = {}
    identities = dict.fromkeys(device.identity for entry in slices for device in entry.devices)
    for identity in identities:
        for holder in inventory.holders(identity):
            held.setdefault((holder.namespace, holder.claim), []).append(holder.result)
    return held
