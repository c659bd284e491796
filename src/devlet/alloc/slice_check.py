"""Amounts in a slice that cannot be parsed.

An API server rejects such slices, but files and foreign stores may have them. Slices are checked when they are added,
so that later code can rely on valid amounts.
"""

from collections.abc import Iterator, Sequence

from devlet.errors import InvalidInput
from devlet.objects.types.meta import QuantityText
from devlet.objects.types.slice import CapacityRequestPolicy, Device, ResourceSlice
from devlet.objects.values.quantity import Quantity

__all__ = ["check_amounts"]

Amounts = Iterator[tuple[str, QuantityText | None]]
"""The path of an amount, and the amount."""


def check_amounts(slice: ResourceSlice) -> None:
    """Check all amounts. Raises InvalidInput that names slice, device and field."""
    for sets in slice.spec.shared_counters:
        for name, counter in sets.counters.items():
            _read(slice, (f"counter set {sets.name}", f"counter {name}"), counter.value)
    for device in slice.spec.devices:
        for where, amount in _amounts(device):
            if amount is not None:
                _read(slice, (f"device {device.name}", where), amount)


def _amounts(device: Device) -> Amounts:
    for name, capacity in device.capacity.items():
        yield f"capacity {name}", capacity.value
        if capacity.request_policy:
            yield from ((f"capacity {name}, {where}", amount) for where, amount in _policy(capacity.request_policy))
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield f"counter {consumption.counter_set}/{name}", counter.value


def _policy(policy: CapacityRequestPolicy) -> Amounts:
    yield "default", policy.default
    yield from (("validValues", value) for value in policy.valid_values)
    if valid := policy.valid_range:
        yield from (("validRange.min", valid.min), ("validRange.max", valid.max), ("validRange.step", valid.step))


def _read(slice: ResourceSlice, where: Sequence[str], amount: QuantityText) -> None:
    try:
        Quantity.parse(amount)
    except InvalidInput as e:
        raise InvalidInput(f"slice {slice.metadata.name}, {', '.join(where)}: {amount!r} is not a quantity: {e}") from e
