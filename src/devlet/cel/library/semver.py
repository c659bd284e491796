"""Semantic versions: `device.attributes["x"].driverVersion.isLessThan(semver("2.0.0"))`.

With `true` as second argument `semver` also accepts incomplete versions: `v1.0`, `01.2`.
"""

from collections.abc import Callable
from typing import Final

from devlet.cel.functions import Function, Library, Overload
from devlet.cel.library.ranges import one, scan, scan_cost
from devlet.cel.types import BOOL, INT, SEMVER, STRING, Type
from devlet.cel.values import CelError
from devlet.errors import InvalidInput
from devlet.objects.values.semver import Semver, is_semver, parse, parse_normalized


def _semver(text: str, normalize: bool = False) -> Semver:
    try:
        return parse_normalized(text) if normalize else parse(text)
    except InvalidInput as e:
        raise CelError(str(e)) from e


def _is_semver(text: str, normalize: bool = False) -> bool:
    return is_semver(text, normalize=normalize)


def _int64(number: int) -> int:
    """Convert an unsigned number to a signed one. The reference does not check whether it fits."""
    return number if number < 2**63 else number - 2**64


def _reader(name: str, ids: tuple[str, str], result: Type, call: Callable[..., object]) -> Function:
    parameters = ((STRING,), (STRING, BOOL))
    return Function(
        name,
        tuple(
            Overload(id, params, result, call, estimate=scan(), cost=scan_cost())
            for id, params in zip(ids, parameters, strict=True)
        ),
    )


def _method(name: str, id: str, params: tuple[Type, ...], result: Type, call: Callable[..., object]) -> Function:
    return Function(name, (Overload(id, (SEMVER, *params), result, call, is_member=True, estimate=one),))


_OTHER = (SEMVER,)

LIBRARY: Final = Library(
    "kubernetes.Semver",
    (
        _reader("semver", ("string_to_semver", "string_bool_to_semver"), SEMVER, _semver),
        _reader("isSemver", ("is_semver_string", "is_semver_string_bool"), BOOL, _is_semver),
        _method("isGreaterThan", "semver_is_greater_than", _OTHER, BOOL, lambda a, b: a.precedence > b.precedence),
        _method("isLessThan", "semver_is_less_than", _OTHER, BOOL, lambda a, b: a.precedence < b.precedence),
        _method("compareTo", "semver_compare_to", _OTHER, INT, Semver.compare),
        _method("major", "semver_major", (), INT, lambda version: _int64(version.major)),
        _method("minor", "semver_minor", (), INT, lambda version: _int64(version.minor)),
        _method("patch", "semver_patch", (), INT, lambda version: _int64(version.patch)),
    ),
)

VERSION_0: Final = Library(
    LIBRARY.name,
    tuple(Function(f.name, tuple(o for o in f.overloads if BOOL not in o.params)) for f in LIBRARY.functions),
)
"""Without the second argument: device selectors had it before all other expressions."""
