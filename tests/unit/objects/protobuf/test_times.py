from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.protobuf.times import read_micro_time, read_time, write_micro_time, write_time
from devlet.objects.protobuf.wire import Malformed, varint
from devlet.objects.values.timestamps import format_micro_time, format_time

moments = st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC))


@given(moments)
def test_every_time_survives(moment: datetime) -> None:
    whole, micro = write_time(format_time(moment)), write_micro_time(format_micro_time(moment))
    assert read_time(whole, 0, len(whole)) == format_time(moment)
    assert read_micro_time(micro, 0, len(micro)) == format_micro_time(moment)


@pytest.mark.spec("KA-2.3")
def test_a_time_is_cut_to_what_its_json_form_can_hold() -> None:
    assert write_time("2026-01-02T03:04:05.75Z") == b"\x08" + varint(1767323045) + b"\x10\x00"
    data = b"\x08\x01\x10" + varint(999_999_999)
    assert read_time(data, 0, len(data)) == "1970-01-01T00:00:01Z"
    assert read_micro_time(data, 0, len(data)) == "1970-01-01T00:00:01.999999Z"


@pytest.mark.spec("KA-2.3")
def test_the_zero_time_is_an_empty_message() -> None:
    assert write_time(None) == write_time("0001-01-01T00:00:00Z") == write_micro_time(None) == b""
    assert read_time(b"", 0, 0) is None
    assert read_time(b"\x08\x00", 0, 2) == "1970-01-01T00:00:00Z"


def test_a_time_beyond_the_calendar_is_malformed() -> None:
    data = b"\x08" + varint(1 << 62)
    with pytest.raises(Malformed, match="beyond the years"):
        read_time(data, 0, len(data))
