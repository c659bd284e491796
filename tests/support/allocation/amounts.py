"""How much of a capacity a request consumes, written down once more for the checker.

`None` means that the policy does not allow the amount: the device cannot be used, whatever is left of it.
"""

from collections.abc import Mapping

from devlet.objects.documents import Document
from devlet.objects.values.quantity import Quantity

__all__ = ["amount", "amounts", "unknown_names"]


def amounts(
    capacity: Mapping[str, Document], requests: Mapping[str, str], driver: str, *, normalise: bool
) -> dict[str, Quantity | None]:
    """For every capacity of a device. With `normalise` a name may carry the driver's domain on either side."""
    asked = {_name(name, driver, normalise): value for name, value in requests.items()}
    return {name: amount(entry, asked.get(_name(name, driver, normalise))) for name, entry in capacity.items()}


def unknown_names(
    capacity: Mapping[str, Document], requests: Mapping[str, str], driver: str, *, normalise: bool
) -> list[str]:
    """Those that are asked for but which the device does not have."""
    names = {_name(name, driver, normalise) for name in capacity}
    return [name for name in requests if _name(name, driver, normalise) not in names]


def _name(name: str, driver: str, normalise: bool) -> str:
    return name.removeprefix(f"{driver}/") if normalise else name


def amount(capacity: Document, requested: str | None) -> Quantity | None:
    policy = capacity.get("requestPolicy") or {}
    default = policy.get("default")
    if requested is None:
        consumed = Quantity.parse(capacity["value"] if default is None else default)
    else:
        consumed = _rounded(Quantity.parse(requested), policy)
    is_default = default is not None and consumed == Quantity.parse(default)
    return consumed if is_default or _allowed(consumed, policy) else None


def _rounded(asked: Quantity, policy: Document) -> Quantity:
    bounds = policy.get("validRange") or {}
    if "min" in bounds:
        low = Quantity.parse(bounds["min"])
        if asked < low or "step" not in bounds:
            return max(asked, low)
        step = Quantity.parse(bounds["step"]).as_int()
        steps = -((low.as_int() - asked.as_int()) // step) if step else 0
        return Quantity.of(low.as_int() + steps * step, "BinarySI")
    at_least = (value for text in policy.get("validValues") or [] if (value := Quantity.parse(text)) >= asked)
    return next(at_least, asked)


def _allowed(consumed: Quantity, policy: Document) -> bool:
    if bounds := policy.get("validRange"):
        if "max" in bounds and consumed > Quantity.parse(bounds["max"]):
            return False
        if "step" in bounds:
            step = Quantity.parse(bounds["step"]).as_int()
            low = Quantity.parse(bounds.get("min", "0")).as_int()
            return step > 0 and (consumed.as_int() - low) % step == 0
        return True
    values = policy.get("validValues")
    return not values or consumed in [Quantity.parse(value) for value in values]
