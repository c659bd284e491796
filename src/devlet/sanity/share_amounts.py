"""The amounts of capacity that a share of a device gets, as a scheduler allocates them."""

from fractions import Fraction

from devlet.alloc.amounts import consumed
from devlet.objects.documents import Document, view
from devlet.objects.types.slice import Device, DeviceCapacity
from devlet.objects.values.quantity import Quantity
from devlet.sanity.check import CannotTell

__all__ = ["share_amounts"]


def share_amounts(device: Document, shares: int) -> dict[str, str]:
    """Return the amounts of each of so many shares. Raises CannotTell if the policy forbids amounts so small."""
    found = view(Device, device)
    return {name: str(_amount(found.name, name, capacity, shares)) for name, capacity in found.capacity.items()}


def _amount(device: str, name: str, capacity: DeviceCapacity, shares: int) -> Quantity:
    """Return the default amount of a share, or less if the shares together would exceed the capacity."""
    whole, usual = Quantity.parse(capacity.value), consumed(capacity, None)
    if usual * shares <= whole:
        return usual
    least = consumed(capacity, Quantity.of(0))
    amount = _part(whole, shares) if least.is_zero else least
    if amount * shares > whole:
        raise CannotTell(f"{shares} shares of {device} would need at least {amount * shares} of its {whole} {name}")
    return amount


def _part(whole: Quantity, shares: int) -> Quantity:
    """Divide an amount, into whole numbers if possible."""
    count = int(whole.fraction) // shares
    return Quantity.of(count, whole.format) if count else whole * Fraction(1, shares)
