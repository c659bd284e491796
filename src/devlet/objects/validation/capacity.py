"""Rules for a device's capacity: what claims may request of it (`requestPolicy`) if they share the device.

Errors of a range name the field that sets the bound and show the value that violates it, as in the reference.
"""

from typing import Any

from devlet.objects.documents import Document
from devlet.objects.validation.amounts import parse, unreadable
from devlet.objects.validation.field_errors import Causes, duplicate, forbidden, invalid, required, too_many
from devlet.objects.values.quantity import Quantity

VALID_VALUES_MAX = 10


def check(capacity: Document, path: str, shared: bool) -> Causes:
    """Check one capacity; `shared` means that the device allows several allocations."""
    value = parse(capacity.get("value", "0"))
    policy = capacity.get("requestPolicy")
    if value is None:
        yield unreadable(f"{path}.value", capacity["value"])
    elif policy is not None and not shared:
        yield forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")
    elif policy is not None:
        yield from _check_policy(policy, f"{path}.requestPolicy", value)


def _check_policy(policy: Document, path: str, capacity: Quantity) -> Causes:
    values, valid_range, default = policy.get("validValues") or [], policy.get("validRange"), policy.get("default")
    if values and valid_range is not None:
        yield forbidden(
            path,
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time',
        )
    elif values:
        if default is None:
            yield required(f"{path}.default", "required when validValues is defined")
        yield from _check_values(values, default, f"{path}.validValues", capacity)
    elif valid_range is not None:
        if default is None:
            yield required(f"{path}.default", "required when validRange is defined")
        yield from _check_range(valid_range, default, f"{path}.validRange", capacity)


def _check_values(values: list[Any], default: Any, path: str, capacity: Quantity) -> Causes:
    if len(values) > VALID_VALUES_MAX:
        yield too_many(path, len(values), VALID_VALUES_MAX)
        return
    amounts: list[Quantity] = []
    for i, value in enumerate(values):
        amount = parse(value)
        if amount is None:
            yield unreadable(f"{path}[{i}]", value)
            continue
        if amount > capacity:
            yield invalid(f"{path}[{i}]", str(amount), f"option is larger than capacity value: {capacity}")
        if amount in amounts:
            yield duplicate(f"{path}[{i}]", str(amount.as_int()))
        elif amounts and amount < amounts[-1]:
            yield invalid(f"{path}[{i}]", str(amount), "values must be sorted in ascending order")
        amounts.append(amount)
    if default is not None and parse(default) not in amounts:
        yield invalid(path, default, "default value is not valid according to the requestPolicy")


def _check_range(valid_range: Document, default: Any, path: str, capacity: Quantity) -> Causes:
    bounds: dict[str, Quantity] = {}
    for member in ("min", "max", "step"):
        if (value := valid_range.get(member)) is not None:
            if (amount := parse(value)) is None:
                yield unreadable(f"{path}.{member}", value)
                return
            bounds[member] = amount
    if "min" not in bounds:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    preset = None if default is None else parse(default)
    yield from _check_bounds(bounds, preset, path, capacity)
    if "step" in bounds:
        yield from _check_step(bounds, preset, f"{path}.step", capacity)


def _check_bounds(bounds: dict[str, Quantity], default: Quantity | None, path: str, capacity: Quantity) -> Causes:
    least, most = bounds["min"], bounds.get("max")
    if least > capacity:
        yield invalid(f"{path}.min", str(least), f"min is larger than capacity value: {capacity}")
    if default is not None and default < least:
        yield invalid(f"{path}.min", str(default), f"default is less than min: {least}")
    if most is None:
        return
    if most > capacity:
        yield invalid(f"{path}.max", str(most), f"max is larger than capacity value: {capacity}")
    if least > most:
        yield invalid(f"{path}.max", str(least), f"min is larger than max: {most}")
    if default is not None and default > most:
        yield invalid(f"{path}.max", str(default), f"default is more than max: {most}")


def _check_step(bounds: dict[str, Quantity], default: Quantity | None, path: str, capacity: Quantity) -> Causes:
    step, least = bounds["step"], bounds["min"]
    # The reference divides by a step of zero and crashes.
    if step.sign <= 0:
        yield invalid(path, str(step), "must be greater than zero")
        return
    if least + step > capacity:
        yield invalid(path, str(step), f"one step {least + step} is larger than capacity value: {capacity}")
    for bound in (default, bounds.get("max")):
        if bound is not None and (bound - least).nano % step.nano:
            yield invalid(path, str(bound), f"value is not a multiple of a given step ({step}) from ({least})")
