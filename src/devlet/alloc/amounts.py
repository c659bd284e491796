"""How much of a device's capacity a request takes, by the policy of each capacity.

Amounts apply to every device: to one that is not shared as a minimum, to a shared one as what is consumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from devlet.errors import InvalidInput
from devlet.objects.quantity import Quantity
from devlet.objects.slice import CapacityRange, CapacityRequestPolicy, Device, DeviceCapacity

__all__ = ["Amount", "amounts"]


@dataclass(frozen=True, slots=True)
class Amount:
    """`consumed` of the capacity `name`, of which there is `limit`, in units of 10⁻⁹."""

    name: str
    consumed: Quantity
    limit: int


def amounts(device: Device, requests: Mapping[str, Quantity], driver: str = "") -> tuple[Amount, ...] | str:
    """What each capacity of the device gives, or why the device cannot be used.

    With a `driver` the names of requests may carry its domain, as those of attributes may.
    """
    wanted = dict(requests)
    for name in requests:
        if name not in device.capacity:
            other = _other_spelling(name, driver)
            if other not in device.capacity:
                return f"has no capacity {name}"
            wanted[other] = wanted.pop(name)
    found = []
    for name, capacity in device.capacity.items():
        amount = consumed(capacity, wanted.get(name), f"device {device.name}, capacity {name}")
        if reason := violation(amount, capacity.request_policy):
            return f"capacity {name}: {amount} {reason}"
        found.append(Amount(name, amount, Quantity.parse(capacity.value).nano))
    return tuple(found)


def _other_spelling(name: str, driver: str) -> str:
    if not driver:
        return name
    return name.removeprefix(f"{driver}/") if name.startswith(f"{driver}/") else f"{driver}/{name}"


def consumed(capacity: DeviceCapacity, requested: Quantity | None, where: str = "") -> Quantity:
    """The amount that is taken for a request of so much, or for none."""
    policy = capacity.request_policy
    if requested is None:
        return Quantity.parse(capacity.value if policy is None or policy.default is None else policy.default)
    if policy is None:
        return requested
    if policy.valid_range and policy.valid_range.min is not None:
        return _in_range(requested, policy.valid_range, where)
    if policy.valid_values:
        values = (Quantity.parse(value) for value in policy.valid_values)
        return next((value for value in values if requested <= value), requested)
    return requested


def _in_range(requested: Quantity, valid: CapacityRange, where: str) -> Quantity:
    minimum = Quantity.parse(valid.min if valid.min is not None else 0)
    if requested < minimum:
        return minimum
    if valid.step is None:
        return requested
    step = _step(valid, where)
    steps = -(-(requested.as_int() - minimum.as_int()) // step)
    return Quantity.of(minimum.as_int() + steps * step, "BinarySI")


def _step(valid: CapacityRange, where: str) -> int:
    step = Quantity.parse(valid.step if valid.step is not None else 0).as_int()
    if step <= 0:
        raise InvalidInput(f"{where}: validRange.step must be greater than zero, not {valid.step}")
    return step


def violation(amount: Quantity, policy: CapacityRequestPolicy | None) -> str:
    """Why a policy forbids the amount, or nothing. The default itself is always allowed."""
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
        if (amount.as_int() - minimum.as_int()) % _step(valid, "capacity"):
            return f"is not a multiple of {valid.step} above {minimum}"
    return ""
