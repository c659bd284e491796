"""Format numbers as the reference does: the shortest digits that parse back to the same number, in its layout."""

import math
from decimal import Decimal


def double_text(value: float) -> str:
    """Format a double: `1`, `0.5`, `1e+06`, `1e-05`, `NaN`, `+Inf`. Exponents are used from a million up and below a
    ten-thousandth."""
    if not math.isfinite(value):
        return _special(value)
    sign, digits, exponent = _shortest(value)
    if -4 <= exponent < 6:
        return sign + _plain(digits, exponent)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def plain_double_text(value: float) -> str:
    """Format a double without an exponent, however large or small."""
    if not math.isfinite(value):
        return _special(value)
    sign, digits, exponent = _shortest(value)
    return sign + _plain(digits, exponent)


def key_text(key: object) -> str:
    """Format a key or an index as in error messages: `no such key: 1.5`."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return double_text(key) if isinstance(key, float) else str(key)


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _shortest(value: float) -> tuple[str, str, int]:
    """Return sign, digits without trailing zeros, and the exponent of the first digit."""
    parts = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, parts.digits))
    assert isinstance(parts.exponent, int)
    exponent = parts.exponent + len(digits) - 1
    return "-" if parts.sign else "", digits.rstrip("0") or "0", exponent if any(parts.digits) else 0


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
