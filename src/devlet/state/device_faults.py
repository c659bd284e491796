"""What a device checkpoint may say that cannot be true, whatever its checksum: a device without a name, or of two pods.

Containers of one pod may have a device together: an init container leaves its devices to those after it.
"""

from msgspec import Struct, structs

from devlet.state.device_entry import Checkpoint, Entry

__all__ = ["Sound", "sound"]


class Sound(Struct, frozen=True):
    """What is left of a checkpoint without its faults, and a line for each of them."""

    checkpoint: Checkpoint
    faults: tuple[str, ...]


def sound(found: Checkpoint) -> Sound:
    """Leave out devices without a name, entries without a pod, and each device that an earlier entry gives to another
    pod."""
    owners: dict[tuple[str, str], Entry] = {}
    faults: list[str] = []
    entries: list[Entry] = []
    for entry in found.entries or ():
        if not entry.pod:
            faults.append(f"an entry of {entry.resource or 'no resource'} names no pod")
            continue
        devices = None
        if entry.devices is not None:
            devices = {
                node: None if ids is None else tuple(id for id in ids if _is_sound(id, entry, owners, faults))
                for node, ids in entry.devices.items()
            }
        entries.append(entry if devices == entry.devices else structs.replace(entry, devices=devices))
    if not faults:
        return Sound(found, ())
    return Sound(structs.replace(found, entries=tuple(entries)), tuple(faults))


def _is_sound(id: str, entry: Entry, owners: dict[tuple[str, str], Entry], faults: list[str]) -> bool:
    if not id:
        faults.append(f"a device of {_holder(entry)}, {entry.resource}, has no name")
        return False
    owner = owners.setdefault((entry.resource, id), entry)
    if owner.pod != entry.pod:
        faults.append(f"device {id} of {entry.resource} is held twice: by {_holder(owner)}, and by {_holder(entry)}")
        return False
    return True


def _holder(entry: Entry) -> str:
    return f"pod {entry.pod}, container {entry.container or '?'}"
