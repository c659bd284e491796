"""The order in which equivalent devices are tried, chosen so that the remaining devices stay useful.

A share goes to the device with the least left, and a partition is the smallest that matches. All other devices stay in
the order in which they are published.
"""

from collections.abc import Iterable

from devlet.alloc.inventory import DeviceEntry
from devlet.objects.values.quantity import Quantity

__all__ = ["best_fit"]


def best_fit(devices: list[DeviceEntry]) -> list[DeviceEntry]:
    """Reorder shares among themselves and partitions among themselves. All other devices keep their position.

    Pools with binding conditions stay last.
    """
    if not any(device.shareable or device.counters for device in devices):
        return devices
    ordered = list(devices)
    for is_one in (_is_share, _is_partition):
        for binds in (False, True):
            places = [i for i, device in enumerate(devices) if is_one(device) and bool(device.slice.bindings) == binds]
            chosen = sorted((devices[i] for i in places), key=_waste)
            for place, device in zip(places, chosen, strict=True):
                ordered[place] = device
    return ordered


def _is_share(device: DeviceEntry) -> bool:
    return device.shareable


def _is_partition(device: DeviceEntry) -> bool:
    return bool(device.counters) and not device.shareable


def _waste(device: DeviceEntry) -> tuple[int, float]:
    counters = sum(amount for _, amount in device.counters)
    return (counters, _room(device) if device.shareable else 0.0)


def _room(device: DeviceEntry) -> float:
    """Return the fraction of its capacity that is left; 1 if nothing is consumed."""
    shares = list(_left(device))
    return sum(shares) / len(shares) if shares else 0.0


def _left(device: DeviceEntry) -> Iterable[float]:
    consumed = device.consumed or {}
    for name, capacity in device.device.capacity.items():
        if limit := Quantity.parse(capacity.value).nano:
            yield 1 - consumed.get(name, 0) / limit
