"""Named string formats: `format.dns1123Label().validate(name)`.

`validate` returns `optional.none()` for a valid string, otherwise the messages of an API server.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from devlet.cel.functions import CallEstimate, Function, Library, Overload, SizedNode
from devlet.cel.library.ranges import REGEX_FACTOR, STRING_FACTOR, actual_size, one, scaled, size_of
from devlet.cel.library.url import BadUrl, parse_request_uri
from devlet.cel.types import STRING, Type, list_of, object_type, optional_of
from devlet.cel.values import NONE, Optional, Value
from devlet.objects import names

FORMAT_TYPE: Final = object_type("kubernetes.NamedFormat")

_LONGEST_REGEX = 128

_uuid = re.compile("[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I | re.A).fullmatch
_base64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})").fullmatch
_date = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})").fullmatch
_time = re.compile("([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})").fullmatch
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True, eq=False)
class NamedFormat:
    """A format. Formats are equal by name. The cost of a check depends on `regex_size`."""

    cel_type: ClassVar[Type] = FORMAT_TYPE

    name: str
    errors: Callable[[str], Sequence[str]]
    regex_size: int

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, NamedFormat) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)


def _prefix(rule: names.Rule) -> names.Rule:
    """Return a rule for the prefix of a name: it may end in a dash, and the byte before the dash is not checked."""

    def errors(text: str) -> names.Errors:
        data = text.encode()
        if len(data) > 1 and text.endswith("-"):
            return rule(data[:-2].decode(errors="replace") + "a")
        return rule(text)

    return errors


def _uri_errors(text: str) -> Sequence[str]:
    try:
        parse_request_uri(text)
    except BadUrl as e:
        return (str(e),)
    return ()


def _is_date(text: str) -> bool:
    match = _date(text)
    if not match:
        return False
    year, month, day = map(int, match.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] + (leap and month == 2)


def _is_datetime(text: str) -> bool:
    """Check a date and time. A second `t` and everything after it are ignored."""
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = _time(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _check(holds: Callable[[str], object], message: str) -> Callable[[str], Sequence[str]]:
    return lambda text: () if holds(text) else (message,)


FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", names.dns_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.dns_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", names.dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(names.dns_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(names.dns_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(names.dns1035_label), 30),
    "labelValue": NamedFormat("LabelValue", names.label_value, 40),
    "uri": NamedFormat("URI", _uri_errors, 1103),
    "uuid": NamedFormat("uuid", _check(_uuid, "does not match the UUID format"), 70),
    "byte": NamedFormat("byte", _check(_base64, "invalid base64"), 84),
    "date": NamedFormat("date", _check(_is_date, "invalid date"), 71),
    "datetime": NamedFormat("datetime", _check(_is_datetime, "invalid datetime"), 71),
}


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return Optional(found) if found else NONE


def _validate(format: NamedFormat, text: str) -> Optional:
    errors = format.errors(text)
    return Optional(list(errors)) if errors else NONE


def _estimate_validate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    return CallEstimate(scaled(scaled(size_of(args[0]), STRING_FACTOR), _LONGEST_REGEX * REGEX_FACTOR))


def _validate_cost(args: Sequence[Value], result: Value) -> int | None:
    format, text = args
    if not isinstance(format, NamedFormat):
        return None
    return math.ceil((1 + actual_size(text)) * STRING_FACTOR) * math.ceil(format.regex_size * REGEX_FACTOR)


def _constant(name: str) -> Function:
    return Function(f"format.{name}", (Overload(f"format.{name}", (), FORMAT_TYPE, lambda: FORMATS[name]),))


LIBRARY: Final = Library(
    "kubernetes.format",
    (
        *map(_constant, FORMATS),
        Function(
            "format.named", (Overload("format-named", (STRING,), optional_of(FORMAT_TYPE), _named, estimate=one),)
        ),
        Function(
            "validate",
            (
                Overload(
                    "format-validate",
                    (FORMAT_TYPE, STRING),
                    optional_of(list_of(STRING)),
                    _validate,
                    is_member=True,
                    estimate=_estimate_validate,
                    cost=_validate_cost,
                ),
            ),
        ),
    ),
)
