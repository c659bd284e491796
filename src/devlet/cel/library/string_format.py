"""`"%s has %.2f".format(["x", 1.5])`: insert values into a string.

Numbers are printed with thousands separators, and `%e` as `1.052033×10⁰³` with its precision treated as a width. This
is the behaviour of the library version that Kubernetes uses, which differs from its documentation.
"""

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

from devlet.cel.library.conversions import to_string
from devlet.cel.library.go_text import quoted
from devlet.cel.library.ranges import check_steps
from devlet.cel.library.times import duration_text, timestamp_text
from devlet.cel.operators import check_weight, find
from devlet.cel.types import Type, type_name
from devlet.cel.values import INT_MAX, CelError, Duration, Timestamp, Uint, Value

_DEFAULT_PRECISION: Final = 6

_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EXACT: Final = Context(prec=2000, rounding=ROUND_HALF_EVEN)

Formatter = Callable[[Value], str]


def format_text(text: str, args: Sequence[Value]) -> str:
    """Format the values. Raises CelError for the first invalid clause. At run time there may be more arguments than
    clauses."""
    pieces = []
    position = used = length = 0
    while (found := text.find("%", position)) >= 0:
        pieces.append(text[position:found])
        if text[found + 1 : found + 2] == "%":
            pieces.append("%")
            position = found + 2
            continue
        if used >= len(args):
            raise CelError(f"index {used} out of range")
        check_weight(args[used])
        position, format_value = _clause(text, found + 1)
        pieces.append(_formatted(format_value, args[used]))
        length += len(pieces[-1])
        check_steps(length)
        used += 1
    return "".join((*pieces, text[position:]))


def _formatted(format_value: Formatter, value: Value) -> str:
    try:
        return format_value(value)
    except CelError as error:
        raise CelError(f"error during formatting: {error.message}", error.node) from None


def _clause(text: str, position: int) -> tuple[int, Formatter]:
    if position >= len(text):
        raise CelError("unexpected end of string")
    try:
        position, precision = _precision(text, position)
    except CelError as error:
        problem = f"error while parsing precision: {error.message}"
        raise CelError(f"could not parse formatting clause: {problem}") from None
    found = _formatter(text[position], precision)
    if found is None:
        letter = chr(text[position].encode(errors="replace")[0])
        raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
    return position + 1, found


def _precision(text: str, position: int) -> tuple[int, int | None]:
    if text[position] != ".":
        return position, None
    start = position + 1
    end = start
    while end < len(text) and text[end] in "0123456789":
        end += 1
    if end >= len(text):
        raise CelError("could not find end of precision specifier")
    digits = text[start:end]
    if not digits or len(digits.lstrip("0")) > 19 or int(digits) > INT_MAX:
        problem = "value out of range" if digits else "invalid syntax"
        raise CelError(
            f"error while converting precision to integer: strconv.Atoi: parsing {quoted(digits)}: {problem}"
        )
    return end, int(digits)


def _formatter(letter: str, precision: int | None) -> Formatter | None:
    if letter in ("f", "e"):
        digits = _DEFAULT_PRECISION if precision is None else precision % 65536
        return lambda value: (_fixed if letter == "f" else _scientific)(value, digits)
    return _FORMATTERS.get(letter)


# One value


def _string(value: Value) -> str:
    """Format a value for `%s`."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_member, value))}]"
    if isinstance(value, dict):
        return _map(value)
    if value is None or isinstance(value, bool | int | float | str | Timestamp | bytes | Duration | Type):
        return _text(value)
    raise CelError(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        f"timestamps, was given {type_name(value)}"
    )


def _text(value: Value) -> str:
    try:
        return to_string(value)
    except CelError as error:
        raise CelError(f"could not convert argument {quoted(error.message)} to string") from None


def _map(value: dict[Value, Value]) -> str:
    pairs = []
    for key in value:
        if not isinstance(key, str | bool | int):
            raise CelError(f"no formatting function for map key of type {type_name(key)}")
        pairs.append((_member(key), _member(find(value, key))))
    return f"{{{', '.join(f'{key}:{member}' for key, member in sorted(pairs, key=lambda pair: pair[0]))}}}"


def _member(value: Value) -> str:
    """Format an element of a list or map, where strings are quoted and doubles have six digits."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"b{quoted(_text(value))}"
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else quoted(to_string(value))
    if isinstance(value, Timestamp):
        return f"timestamp({quoted(timestamp_text(value))})"
    if isinstance(value, Duration):
        return f"duration({quoted(duration_text(value))})"
    if value is None or isinstance(value, bool | int | list | tuple | dict | Type):
        return _string(value)
    raise CelError(f"no formatting function for {type_name(value)}")


def _decimal(value: Value) -> str:
    return str(int(_integer(value, "decimal clause can only be used on integers")))


def _octal(value: Value) -> str:
    return f"{_integer(value, 'octal clause can only be used on integers'):o}"


def _binary(value: Value) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{_integer(value, 'only integers and bools can be formatted as binary'):b}"


def _hexadecimal(value: Value) -> str:
    if isinstance(value, str):
        return value.encode(errors="replace").hex()
    if isinstance(value, bytes):
        return value.hex()
    return f"{_integer(value, 'only integers, byte buffers, and strings can be formatted as hex'):x}"


def _integer(value: Value, problem: str) -> int:
    if type(value) not in (int, Uint):
        raise CelError(f"{problem}, was given {type_name(value)}")
    return int(value)


def _fixed(value: Value, precision: int) -> str:
    number = _double(value, "fixed-point clause can only be used on doubles")
    if not math.isfinite(number):
        return _infinite(number)
    if number == 0:
        number = 0.0
    exact = -Decimal(number).as_tuple().exponent  # type: ignore[operator]
    digits = min(precision, max(exact, 0))
    text = f"{Decimal(number).quantize(Decimal(1).scaleb(-digits), context=_EXACT):,f}"
    zeros = "0" * ((precision - digits) % 256)
    return text + ("." if digits == 0 and zeros else "") + zeros


def _scientific(value: Value, width: int) -> str:
    number = _double(value, "scientific clause can only be used on doubles")
    if not math.isfinite(number):
        return _infinite(number).rjust(width)
    mantissa, _, exponent = f"{number if number else 0.0:.6e}".partition("e")
    return f"{mantissa}×10{exponent.lstrip('+').translate(_SUPERSCRIPTS)}".rjust(width)


def _infinite(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _double(value: Value, problem: str) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if not isinstance(value, float):
        raise CelError(f"{problem}, was given {type_name(value)}")
    return value


_FORMATTERS: Final[dict[str, Formatter]] = {
    "s": _string,
    "d": _decimal,
    "b": _binary,
    "x": _hexadecimal,
    "X": lambda value: _hexadecimal(value).upper(),
    "o": _octal,
}
