"""Rules for quantities in objects. Quantities are parsed before validation, so an invalid one is rare, but is still
reported."""

from typing import Any

from devlet.errors import Cause, InvalidInput
from devlet.objects.validation.field_errors import invalid
from devlet.objects.values.quantity import Quantity


def parse(value: Any) -> Quantity | None:
    try:
        return Quantity.parse(value)
    except InvalidInput:
        return None


def unreadable(path: str, value: object) -> Cause:
    return invalid(path, value, "must be a quantity, such as 500m, 2 or 1.5Gi")


def check_not_negative(path: str, value: Any) -> Cause | None:
    amount = parse(value)
    if amount is None:
        return unreadable(path, value)
    return invalid(path, str(amount), "must be greater than or equal to 0") if amount.sign < 0 else None
