"""Kubernetes quantities: exact numbers with a suffix, such as `500m`, `1.5Gi` or `1e3`.

A quantity remembers the family of its suffix and prints itself in canonical form: no fraction digits and the largest
suffix that fits, so `1.5Gi` prints as `1536Mi`. One value has many spellings, so never compare strings. The resolution
is one nano; anything finer is rounded away from zero, so that a request for a tiny amount does not become zero.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, Self

import msgspec

from devlet.errors import InvalidInput

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

NANO: Final = 10**9

# Larger values are capped when written with a binary suffix; the other families have no such limit.
BINARY_MAX: Final = 2**63 - 1

# A limit of devlet: the reference takes exponents up to 2^31 and then computes for minutes.
MAX_TEXT: Final = 1024
MAX_EXPONENT: Final = 1000

_PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_WRONG_FORMAT = f"quantities must match the regular expression '{_PATTERN}'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"

# As in the reference, this is more permissive than the pattern in the message: a bare suffix is zero.
_split = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?[0-9]*+)").fullmatch
_exponent = re.compile(r"[eE]([-+]?[0-9]{1,19})").fullmatch

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_EXPONENT = {suffix: 3 * step - 9 for step, suffix in enumerate(_DECIMAL)}
_BINARY_EXPONENT = {suffix: 10 * step for step, suffix in enumerate(_BINARY) if suffix}


class Quantity(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An immutable amount: `nano` is the exact value in units of 10⁻⁹. Ordered, compared and hashed by value."""

    nano: int
    format: Format = "DecimalSI"

    @classmethod
    def parse(cls, value: str | int | float) -> "Quantity":
        """Parse a string or a JSON number."""
        if isinstance(value, str):
            if len(value) > MAX_TEXT:
                raise InvalidInput(f"quantity has {len(value)} characters, at most {MAX_TEXT} are allowed")
            return _parse(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"quantity must be a string or a number, not {type(value).__name__}")
        if isinstance(value, int) and value.bit_length() > 3 * MAX_EXPONENT:
            raise InvalidInput("quantity is too large")
        return _parse(repr(value))

    @classmethod
    def of(cls, value: int, format: Format = "DecimalSI") -> Self:
        """Return a quantity with an integer value."""
        return cls(value * NANO, format)

    @property
    def is_zero(self) -> bool:
        return self.nano == 0

    @property
    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    @property
    def fraction(self) -> Fraction:
        return Fraction(self.nano, NANO)

    def as_int(self) -> int:
        """Return the value as an integer, rounded away from zero."""
        return _divide_up(self.nano, NANO)

    def as_milli(self) -> int:
        """Return the value in thousandths, rounded away from zero."""
        return _divide_up(self.nano, NANO // 1000)

    def exact_int(self) -> int | None:
        """Return the value if it is an integer."""
        whole, rest = divmod(self.nano, NANO)
        return None if rest else whole

    def compare(self, other: "Quantity") -> int:
        """Return -1, 0 or 1."""
        return (self.nano > other.nano) - (self.nano < other.nano)

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nano, self.format)

    def __mul__(self, factor: int | Fraction) -> "Quantity":
        """Multiply, rounding away from zero to a whole nano."""
        ratio = Fraction(factor)
        return Quantity(_divide_up(self.nano * ratio.numerator, ratio.denominator), self.format)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __float__(self) -> float:
        """Return the nearest float; infinity if the value is too large."""
        try:
            return self.nano / NANO
        except OverflowError:
            return self.sign * float("inf")

    def __str__(self) -> str:
        """Return the canonical form."""
        if self.format == "DecimalExponent":
            return _decimal(self.nano, _exponent_suffix, MAX_EXPONENT * 2)
        # Small and fractional amounts are easier to read in decimal, and lose nothing.
        if self.format == "DecimalSI" or abs(self.nano) < 1024 * NANO or self.nano % NANO:
            return _decimal(self.nano, _decimal_suffix, 18)
        return _binary(self.nano // NANO)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


ZERO: Final = Quantity(0)


@lru_cache(16384)
def _parse(text: str) -> Quantity:
    parts = _split(text)
    if not parts or not text:
        raise InvalidInput(_WRONG_FORMAT)
    sign, whole, decimals, suffix = parts.groups("")
    base, exponent, format = _interpret(suffix)
    digits = whole + decimals
    if not digits and (exponent < -9 or (base == 2 and exponent >= 50)):
        raise InvalidInput(_WRONG_NUMBER)
    mantissa = int(digits or "0")
    if base == 10:
        nano = _scaled(mantissa, exponent - len(decimals) + 9)
    else:
        nano = min(_scaled(mantissa << exponent, 9 - len(decimals)), BINARY_MAX * NANO)
        if 0 < nano < NANO:
            format = "DecimalSI"
    return Quantity(-nano if sign == "-" else nano, format)


def _interpret(suffix: str) -> tuple[int, int, Format]:
    if (exponent := _DECIMAL_EXPONENT.get(suffix)) is not None:
        return 10, exponent, "DecimalSI"
    if (exponent := _BINARY_EXPONENT.get(suffix)) is not None:
        return 2, exponent, "BinarySI"
    if match := _exponent(suffix):
        return 10, int(match[1]), "DecimalExponent"
    raise InvalidInput(_WRONG_SUFFIX)


def _scaled(mantissa: int, exponent: int) -> int:
    """Return mantissa · 10^exponent for mantissa ≥ 0, rounded up."""
    if not mantissa:
        return 0
    if exponent - 9 > MAX_EXPONENT:
        raise InvalidInput(f"quantity is too large, the exponent may be at most {MAX_EXPONENT}")
    if exponent >= 0:
        return int(mantissa * 10**exponent)
    if -exponent > MAX_TEXT * 2:  # longer than any mantissa
        return 1
    return _divide_up(mantissa, 10**-exponent)


def _divide_up(value: int, divisor: int) -> int:
    """Divide, rounding away from zero; `divisor` is positive."""
    return -(-value // divisor) if value >= 0 else value // divisor


def _decimal(nano: int, suffix: Callable[[int], str], limit: int) -> str:
    exponent = -9
    while exponent < limit and nano and nano % 1000 == 0:
        nano //= 1000
        exponent += 3
    return f"{nano}{suffix(exponent)}" if nano else "0"


def _decimal_suffix(exponent: int) -> str:
    return _DECIMAL[exponent // 3 + 3]


def _exponent_suffix(exponent: int) -> str:
    return f"e{exponent}" if exponent else ""


def _binary(value: int) -> str:
    step = 0
    while step < 6 and value % 1024 == 0:
        value //= 1024
        step += 1
    return f"{value}{_BINARY[step]}"
