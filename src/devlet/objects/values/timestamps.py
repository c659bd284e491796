"""Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds (Time) or microseconds (MicroTime).

Any RFC 3339 string is accepted. Excess precision is cut off and not rounded, so a time does not move into the
future.
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from devlet.errors import InvalidInput

_LAST = datetime.max.replace(tzinfo=UTC)

_rfc3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,32}))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
).fullmatch


def parse_time(text: object) -> datetime:
    """Parse a Time: in UTC, without a fraction of a second."""
    return parse_micro_time(text).replace(microsecond=0)


def parse_micro_time(text: object) -> datetime:
    """Parse a MicroTime: in UTC, to the microsecond."""
    match = _rfc3339(text) if isinstance(text, str) else None
    if not match:
        raise InvalidInput(f"{_shown(text)} is not an RFC 3339 time such as 2026-01-02T15:04:05Z")
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, *offset = match.groups("")[6:]
    micros = int(fraction[:6].ljust(6, "0"))
    try:
        return datetime(year, month, day, hour, minute, second, micros, _zone(*offset)).astimezone(UTC)
    except (ValueError, OverflowError) as e:
        raise InvalidInput(f"{_shown(text)} is not an RFC 3339 time: {e}") from e


@lru_cache(16)  # one write puts the same time in several places
def format_time(moment: datetime) -> str:
    """Format a Time; `moment` must have a time zone."""
    return f"{_utc(moment).isoformat(timespec='seconds')[:-6]}Z"


def format_micro_time(moment: datetime) -> str:
    """Format a MicroTime; `moment` must have a time zone."""
    return f"{_utc(moment).isoformat(timespec='microseconds')[:-6]}Z"


def after(moment: datetime, seconds: float) -> datetime:
    """Return the time `seconds` later, or the last possible time: a 64-bit number may lead beyond it."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time without a zone means nothing here")
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def _zone(sign: str, hours: str, minutes: str) -> timezone:
    if not sign:
        return UTC
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError("offset out of range")
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if sign == "-" else offset)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
