"""Time and MicroTime in protobuf: seconds and nanoseconds since 1970, or nothing for Go's zero time.

The two have the same fields. As in JSON, Time is truncated to seconds and MicroTime to microseconds; otherwise an
object would change by being read in one encoding and written in the other.
"""

from datetime import UTC, datetime, timedelta

from devlet.objects.protobuf import wire as protobuf_wire
from devlet.objects.protobuf.wire import Malformed, varint
from devlet.objects.schema.leaves import ZERO_TIME
from devlet.objects.values.timestamps import format_micro_time, format_time, parse_micro_time, parse_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def read_time(data: bytes, at: int, end: int) -> str | None:
    moment = _moment(data, at, end, micro=False)
    return None if moment is None else format_time(moment)


def read_micro_time(data: bytes, at: int, end: int) -> str | None:
    moment = _moment(data, at, end, micro=True)
    return None if moment is None else format_micro_time(moment)


def write_time(text: str | None) -> bytes:
    return b"" if text is None else _fields(parse_time(text))


def write_micro_time(text: str | None) -> bytes:
    return b"" if text is None else _fields(parse_micro_time(text))


def _moment(data: bytes, at: int, end: int, *, micro: bool) -> datetime | None:
    if at == end:
        return None
    found = dict(protobuf_wire.members(data, at, end))
    seconds, nanos = found.get(1, 0), found.get(2, 0)
    if isinstance(seconds, bytes) or isinstance(nanos, bytes):
        raise Malformed("a time has a field of the wrong wire type")
    micros = int(protobuf_wire.signed32(nanos) / 1000) if micro else 0  # towards zero, like Go
    try:
        moment = _EPOCH + timedelta(seconds=protobuf_wire.signed64(seconds), microseconds=micros)
    except OverflowError:
        raise Malformed("a time is beyond the years 1 to 9999") from None
    return None if moment == ZERO_TIME else moment


def _fields(moment: datetime) -> bytes:
    if moment == ZERO_TIME:
        return b""
    seconds, micros = divmod((moment - _EPOCH) // _MICROSECOND, 1_000_000)
    return b"\x08%b\x10%b" % (varint(seconds), varint(micros * 1000))
