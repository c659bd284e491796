"""Quantities during evaluation: the number, and its representation in the reference.

The value of `quantity("1000m")` is one, but `isInteger()` is false: the reference checks whether it was written as a
64-bit integer, not whether it is whole. It also rejects the result of `add` and `sub` on the right of `==`. A Quantity
of the host is treated as if parsed from its canonical string.
"""

from functools import lru_cache
from math import inf
from typing import ClassVar, Final

from devlet.cel.types import QUANTITY, Type
from devlet.cel.values import INT_MAX, INT_MIN
from devlet.objects.values.quantity import Format, Quantity

_NANO = -9
_MAX_DIGITS = 18
_BINARY_DIGITS = 14
_BINARY_SHIFTS: Final = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class Amount(Quantity, frozen=True, eq=False, gc=False, kw_only=True):
    """The number `unscaled` · 10^`exponent`. The reference never treats `is_big` numbers as integers."""

    cel_type: ClassVar[Type] = QUANTITY

    unscaled: int
    exponent: int
    is_big: bool

    def exact_int64(self) -> int | None:
        """Return the result of `asInteger`; None if it is an error."""
        if self.is_big or self.exponent < 0:
            return None
        number = self.unscaled * 10**self.exponent if self.unscaled else 0
        return number if INT_MIN <= number <= INT_MAX else None

    def approximate_float(self) -> float:
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = inf if self.unscaled > 0 else -inf
        return base * _power_of_ten(self.exponent) if self.exponent else base


class Sum(Amount, frozen=True, eq=False, gc=False, kw_only=True):
    """The result of `add` or `sub`. On the right of `==` it is an error, whatever is on the left."""


@lru_cache(4096)
def read(text: str) -> Amount:
    """Parse a string. Raises InvalidInput."""
    return _amount(Quantity.parse(text), text)


def amount_of(quantity: Quantity) -> Amount:
    return quantity if isinstance(quantity, Amount) else read(str(quantity))


def add(a: Quantity, b: Quantity) -> Sum:
    return _sum(amount_of(a), amount_of(b), 1)


def subtract(a: Quantity, b: Quantity) -> Sum:
    return _sum(amount_of(a), amount_of(b), -1)


def whole(number: int) -> Amount:
    return Amount(number * 10**-_NANO, "DecimalExponent", unscaled=number, exponent=0, is_big=False)


def _sum(a: Amount, b: Amount, sign: int) -> Sum:
    format = a.format if a.nano else b.format
    nano = a.nano + sign * b.nano
    exponent = _common_exponent(a, b)
    unscaled = _at(a, exponent) + sign * _at(b, exponent)
    fits = all(INT_MIN <= number <= INT_MAX for number in (unscaled, _at(a, exponent), _at(b, exponent)))
    return Sum(nano, format, unscaled=unscaled, exponent=exponent, is_big=a.is_big or b.is_big or not fits)


def _common_exponent(a: Amount, b: Amount) -> int:
    if a.is_big or b.is_big:
        return min(a.exponent, b.exponent)
    if not b.unscaled:
        return a.exponent
    return min(a.exponent, b.exponent) if a.unscaled else b.exponent


def _at(amount: Amount, exponent: int) -> int:
    return int(amount.unscaled * 10 ** (amount.exponent - exponent)) if amount.unscaled else 0


def _amount(quantity: Quantity, text: str) -> Amount:
    """Represent the amount as the reference does: short numbers as an integer and an exponent, others in units of a
    nano."""
    digits, decimals, suffix = _split(text)
    small = _small_binary(digits, decimals, suffix) if quantity_is_binary(suffix) else _small(digits, decimals, suffix)
    if small is None:
        return _big(quantity)
    unscaled, exponent = small
    signed = -unscaled if text.startswith("-") else unscaled
    return _made(quantity, signed, exponent, False)


def quantity_is_binary(suffix: str) -> bool:
    return suffix.endswith("i")


def _small(digits: str, decimals: str, suffix: str) -> tuple[int, int] | None:
    exponent = _decimal_exponent(suffix) - len(decimals)
    if len(digits) + len(decimals) > _MAX_DIGITS or exponent < _NANO:
        return None
    return int(digits + decimals), exponent


def _small_binary(digits: str, decimals: str, suffix: str) -> tuple[int, int] | None:
    shift = _BINARY_SHIFTS[suffix]
    if decimals or len(digits) + shift * 3 // 10 > _BINARY_DIGITS:
        return None
    return int(digits) << shift, 0


def _decimal_exponent(suffix: str) -> int:
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return int(suffix[1:])
    return 3 * "num kMGTPE".index(suffix or " ") - 9


def _split(text: str) -> tuple[str, str, str]:
    """Split a valid quantity into digits (at least one, without leading zeros), decimals and suffix."""
    unsigned = text.lstrip("+-")
    number = unsigned.rstrip("numkKMGTPEi")
    if "e" in number.lower():
        number = number[: number.lower().index("e")]
    digits, _, decimals = number.partition(".")
    return digits.lstrip("0") or "0", decimals, unsigned[len(number) :]


def _big(quantity: Quantity) -> Amount:
    capped = quantity.format == "BinarySI" and abs(quantity.nano) == INT_MAX * 10**-_NANO
    if capped or not quantity.nano:
        return _made(
            quantity, quantity.nano // 10**-_NANO if quantity.nano > 0 else -(-quantity.nano // 10**9), 0, True
        )
    return _made(quantity, quantity.nano, _NANO, True)


def _made(quantity: Quantity, unscaled: int, exponent: int, is_big: bool) -> Amount:
    format: Format = quantity.format
    return Amount(quantity.nano, format, unscaled=unscaled, exponent=exponent, is_big=is_big)


def _power_of_ten(exponent: int) -> float:
    """Return the power as Go computes it: from tables of steps of 32, so that the last digit is the same."""
    if exponent > 308:
        return inf
    if exponent < -323:
        return 0.0
    steps, rest = divmod(abs(exponent), 32)
    if exponent < 0:
        return float(f"1e-{steps * 32}") / float(f"1e{rest}")
    return float(f"1e{steps * 32}") * float(f"1e{rest}")
