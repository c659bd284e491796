"""The errors of operators whose operands have the wrong types."""

from typing import Final, NoReturn

from devlet.cel.values import CelError, Duration, Timestamp, Value

NO_OVERLOAD: Final = "no such overload"

_RECEIVERS = frozenset((str, Duration, Timestamp))


def unsupported(function: str, left: Value, has_operator: bool = False) -> CelError:
    """Return the error. The reference names the operator only if the type on the left has neither it nor methods."""
    short = has_operator or type(left) in _RECEIVERS
    return CelError(NO_OVERLOAD if short else f"{NO_OVERLOAD}: {function}")


def no_overload() -> NoReturn:
    raise CelError(NO_OVERLOAD)
