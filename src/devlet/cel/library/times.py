"""Durations and timestamps: parsing, formatting, and their methods (`getHours()`, `getFullYear("Europe/Berlin")`).

Named time zones come from the system's zone database, the only files that this package reads; offsets such as `+02:00`
need none. Months, days of the year and `getDayOfMonth` count from 0, `getDate` counts from 1, Sunday is day 0.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from devlet.cel.functions import Function, Library, Overload
from devlet.cel.library.go_text import quoted
from devlet.cel.texts import plain_double_text
from devlet.cel.types import DURATION, INT, STRING, TIMESTAMP
from devlet.cel.values import INT_MAX, INT_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, CelError, Duration, Timestamp, timestamp

_SECOND: Final = 10**9
_DAY: Final = 86400
_UNITS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": _SECOND}
_UNITS_OF_TIME: Final = {**_UNITS, "m": 60 * _SECOND, "h": 3600 * _SECOND}
_EPOCH: Final = date(1970, 1, 1).toordinal()

# Two days inside Python's limits: enough for every zone offset, and no zone changes there.
_FIRST: Final = TIMESTAMP_MIN // _SECOND + 2 * _DAY
_LAST: Final = TIMESTAMP_MAX // _SECOND - 2 * _DAY

_piece = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?([^0-9.]++)").match
_rfc3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
).fullmatch
_number = re.compile(r"[+-]?[0-9]+").fullmatch


# Texts


def parse_duration(text: str) -> Duration | None:
    """Parse `1h30m`, `-1.5s` or `0`; None if it is not a duration, or too long."""
    negative, rest = text.startswith("-"), text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    total = 0
    while piece := _piece(rest):
        nanoseconds = _nanoseconds(*piece.groups())
        if nanoseconds is None:
            return None
        total, rest = total + nanoseconds, rest[piece.end() :]
        if not rest:
            return _duration(-total if negative else total)
    return None


def _nanoseconds(whole: str, fraction: str | None, name: str) -> int | None:
    unit = _UNITS_OF_TIME.get(name)
    if unit is None or not (whole or fraction) or len(whole.lstrip("0")) > 19:
        return None
    digits = (fraction or "").ljust(1, "0")[:18]
    part = int(float(int(digits)) * (float(unit) / 10.0 ** len(digits)))
    return int(whole or "0") * unit + part


def _duration(nanoseconds: int) -> Duration | None:
    return Duration(nanoseconds) if INT_MIN <= nanoseconds <= INT_MAX else None


def duration_text(value: Duration) -> str:
    """Format a duration in seconds: `5400s`, `0.000001s`."""
    return plain_double_text(_in_units(value, _SECOND)) + "s"


def parse_timestamp(text: str) -> Timestamp | None:
    """Parse RFC 3339, slightly more liberally than the standard; None if it is not a time. Raises if out of range."""
    match = _rfc3339(text)
    if not match:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    if hour > 23 or minute > 59 or second > 59 or not _is_date(year, month, day):
        return None
    zone = _offset(match[8], int(match[9] or 0), int(match[10] or 0))
    if zone is None:
        return None
    seconds = _days(year, month, day) * _DAY + hour * 3600 + minute * 60 + second - zone
    return timestamp(seconds * _SECOND + int((match[7] or "0").ljust(9, "0")[:9]), zone)


def _offset(sign: str | None, hours: int, minutes: int) -> int | None:
    if hours > 24 or minutes > 60:
        return None
    return (-60 if sign == "-" else 60) * (hours * 60 + minutes)


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year or 2000, month, day)  # the year 0 is also a leap year
    except ValueError:
        return False
    return True


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970. Python has no year 0, but the calendar repeats after 400 years."""
    same = 2000 + year % 400
    return date(same, month, day).toordinal() - _EPOCH + (year - same) // 400 * 146097


def timestamp_text(value: Timestamp) -> str:
    """Format as RFC 3339 with as many fraction digits as needed, in the zone in which the timestamp was written."""
    moment = _moment(value, value.offset)
    fraction = f".{moment.nanosecond:09d}".rstrip("0").rstrip(".")
    day = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
    return f"{day}T{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}{fraction}{_zone_text(value.offset)}"


def _zone_text(offset: int) -> str:
    if offset == 0:
        return "Z"
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


# Parts


class _Moment(NamedTuple):
    """A time as a clock and a calendar in its zone show it."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    nanosecond: int
    day_of_year: int
    day_of_week: int


def _moment(value: Timestamp, offset: int) -> _Moment:
    seconds, nanosecond = divmod(value.nanoseconds, _SECOND)
    days, rest = divmod(seconds + offset, _DAY)
    cycles, days = divmod(days, 146097)
    day = date.fromordinal(days + _EPOCH)
    return _Moment(
        day.year + 400 * cycles,
        day.month,
        day.day,
        rest // 3600,
        rest // 60 % 60,
        rest % 60,
        nanosecond,
        day.timetuple().tm_yday - 1,
        day.isoweekday() % 7,
    )


def _zone_offset(value: Timestamp, zone: str) -> int:
    """Return the offset in seconds east of UTC at that time."""
    if ":" in zone:
        return _fixed_offset(zone)
    seconds = min(max(value.nanoseconds // _SECOND, _FIRST), _LAST)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    offset = moment.astimezone(_zone(zone)).utcoffset()
    return int(offset.total_seconds()) if offset else 0


def _fixed_offset(zone: str) -> int:
    hours, _, minutes = zone.partition(":")
    return 60 * (_atoi(hours) * 60 + (-1 if zone.startswith("-") else 1) * _atoi(minutes))


def _atoi(text: str) -> int:
    if not _number(text):
        raise CelError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    if len(text) > 20 or not INT_MIN <= int(text) <= INT_MAX:
        raise CelError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return int(text)


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name in ("", "UTC", "Local"):
        return UTC
    if ".." in name or name[0] in "/\\":
        raise CelError("time: invalid location name")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


def _in_units(value: Duration, unit: int) -> float:
    """Convert and round as the reference does: for long durations, a value close to the next hour becomes the next
    hour."""
    whole, rest = divmod(abs(value.nanoseconds), unit)
    units = float(whole) + float(rest) / unit
    return -units if value.nanoseconds < 0 else units


# Functions

_FROM_TIMESTAMP: Final[dict[str, tuple[str, Callable[[_Moment], int]]]] = {
    "getFullYear": ("timestamp_to_year", lambda moment: moment.year),
    "getMonth": ("timestamp_to_month", lambda moment: moment.month - 1),
    "getDayOfYear": ("timestamp_to_day_of_year", lambda moment: moment.day_of_year),
    "getDayOfMonth": ("timestamp_to_day_of_month", lambda moment: moment.day - 1),
    "getDate": ("timestamp_to_day_of_month_1_based", lambda moment: moment.day),
    "getDayOfWeek": ("timestamp_to_day_of_week", lambda moment: moment.day_of_week),
    "getHours": ("timestamp_to_hours", lambda moment: moment.hour),
    "getMinutes": ("timestamp_to_minutes", lambda moment: moment.minute),
    "getSeconds": ("timestamp_to_seconds", lambda moment: moment.second),
    "getMilliseconds": ("timestamp_to_milliseconds", lambda moment: moment.nanosecond // 10**6),
}


def _milliseconds(value: Duration) -> int:
    milliseconds = abs(value.nanoseconds) // 10**6
    return -milliseconds if value.nanoseconds < 0 else milliseconds


_FROM_DURATION: Final[dict[str, tuple[str, Callable[[Duration], int]]]] = {
    "getHours": ("duration_to_hours", lambda value: int(_in_units(value, 3600 * _SECOND))),
    "getMinutes": ("duration_to_minutes", lambda value: int(_in_units(value, 60 * _SECOND))),
    "getSeconds": ("duration_to_seconds", lambda value: int(_in_units(value, _SECOND))),
    "getMilliseconds": ("duration_to_milliseconds", _milliseconds),
}


def _accessor(name: str) -> Function:
    overload, part = _FROM_TIMESTAMP[name]

    def in_utc(value: Timestamp) -> int:
        return part(_moment(value, 0))

    def in_zone(value: Timestamp, zone: str) -> int:
        return part(_moment(value, _zone_offset(value, zone)))

    zoned = "timestamp_to_seconds_tz" if name == "getSeconds" else f"{overload}_with_tz"
    overloads = [
        Overload(overload, (TIMESTAMP,), INT, in_utc, is_member=True),
        Overload(zoned, (TIMESTAMP, STRING), INT, in_zone, is_member=True),
    ]
    if name in _FROM_DURATION:
        of_duration, call = _FROM_DURATION[name]
        overloads.append(Overload(of_duration, (DURATION,), INT, call, is_member=True))
    return Function(name, tuple(overloads))


LIBRARY: Final = Library("times", tuple(map(_accessor, _FROM_TIMESTAMP)))
