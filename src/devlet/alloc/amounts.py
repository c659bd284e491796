"""How much of a device's capacity a request takes, according to the policy of each capacity.

For a device that cannot be shared an amount is the required minimum. For a shared device it is what the request
consumes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from devlet.objects.types.slice import CapacityRange, CapacityRequestPolicy, Device, DeviceCapacity
from devlet.objects.values.quantity import Quantity

__all__ = ["Amount", "amounts"]


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount `consumed` of the capacity `name`, which has `limit` in total; both in units of 10⁻⁹."""

    name: str
    consumed: Quantity
    limit: int


def amounts(
    device: Device, requests: Mapping[str, Quantity], driver: str, *, strict: bool = True
) -> tuple[Amount, ...] | str:
    """Return what the request takes of each capacity, or why the device cannot be used.

    With `strict`, requests may name a capacity with the driver's domain, as they may for attributes, and negative
    amounts are rejected. A contradictory policy excludes only its own device.
    """
    wanted = dict(requests)
    for name in requests:
        if name not in device.capacity:
            other = _other_spelling(name, driver) if strict else name
            if other not in device.capacity:
                return f"has no capacity {name}"
            wanted[other] = wanted.pop(name)
    found = []
    for name, capacity in device.capacity.items():
        if _has_bad_step(capacity.request_policy):
            return f"capacity {name}: validRange.step must be greater than zero"
        amount = consumed(capacity, wanted.get(name))
        if reason := violation(amount, capacity.request_policy):
            return f"capacity {name}: {amount} {reason}"
        if strict and amount.sign < 0:
            return f"capacity {name}: {amount} is negative"
        found.append(Amount(name, amount, Quantity.parse(capacity.value).nano))
    return tuple(found)


def _other_spelling(name: str, driver: str) -> str:
    return name.removeprefix(f"{driver}/") if name.startswith(f"{driver}/") else f"{driver}/{name}"


def _has_bad_step(policy: CapacityRequestPolicy | None) -> bool:
    """Return whether the policy has a step of zero. It passes the reference's validation, but crashes its allocator."""
    step = policy.valid_range.step if policy and policy.valid_range else None
    return step is not None and Quantity.parse(step).as_int() <= 0


def consumed(capacity: DeviceCapacity, requested: Quantity | None) -> Quantity:
    """Return the amount that a request consumes; `requested` is None if the request does not name the capacity."""
    policy = capacity.request_policy
    if requested is None:
        return Quantity.parse(capacity.value if policy is None or policy.default is None else policy.default)
    if policy is None:
        return requested
    if policy.valid_range and policy.valid_range.min is not None:
        return _in_range(requested, policy.valid_range)
    if policy.valid_values:
        values = (Quantity.parse(value) for value in policy.valid_values)
        return next((value for value in values if requested <= value), requested)
    return requested


def _in_range(requested: Quantity, valid: CapacityRange) -> Quantity:
    minimum = Quantity.parse(valid.min if valid.min is not None else 0)
    if requested < minimum:
        return minimum
    if valid.step is None:
        return requested
    step = Quantity.parse(valid.step).as_int()
    steps = -(-(requested.as_int() - minimum.as_int()) // step)
    return Quantity.of(minimum.as_int() + steps * step, "BinarySI")


def violation(amount: Quantity, policy: CapacityRequestPolicy | None) -> str:
    """Return why the policy forbids the amount, or an empty string. The default itself is always allowed."""
    if policy is None:
        return ""
    if policy.default is not None:
        default = Quantity.parse(policy.default)
        if (amount.nano, amount.format) == (default.nano, default.format):
            return ""
    if policy.valid_range:
        return _range_violation(amount, policy.valid_range)
    if policy.valid_values and all(amount != Quantity.parse(value) for value in policy.valid_values):
        return f"is not one of {', '.join(map(str, policy.valid_values))}"
    return ""


def _range_violation(amount: Quantity, valid: CapacityRange) -> str:
    if valid.max is not None and amount > Quantity.parse(valid.max):
        return f"is more than {valid.max}, the most that one request may take"
    if valid.step is not None:
        minimum = Quantity.parse(valid.min if valid.min is not None else 0)
        if (amount.as_int() - minimum.as_int()) % Quantity.parse(valid.step).as_int():
            return f"is not a multiple of {valid.step} above {minimum}"
    return ""
