from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.objects.values.timestamps import after, format_micro_time, format_time, parse_micro_time, parse_time

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 890123, UTC)

zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones)


def test_a_time_has_whole_seconds() -> None:
    assert format_time(MOMENT) == "2026-03-04T05:06:07Z"
    assert parse_time("2026-03-04T05:06:07.89Z") == MOMENT.replace(microsecond=0)


def test_a_micro_time_has_six_digits() -> None:
    assert format_micro_time(MOMENT) == "2026-03-04T05:06:07.890123Z"
    assert format_micro_time(MOMENT.replace(microsecond=0)) == "2026-03-04T05:06:07.000000Z"
    assert parse_micro_time("2026-03-04T05:06:07.890123Z") == MOMENT


def test_digits_beyond_a_microsecond_are_cut_off() -> None:
    assert parse_micro_time("2026-03-04T05:06:07.890123999Z") == MOMENT


def test_the_zero_time_can_be_written_and_read() -> None:
    zero = datetime(1, 1, 1, tzinfo=UTC)
    assert format_time(zero) == "0001-01-01T00:00:00Z"
    assert parse_time("0001-01-01T00:00:00Z") == zero


def test_offsets_become_utc() -> None:
    parsed = parse_micro_time("2026-03-04T07:36:07.890123+02:30")
    assert parsed == MOMENT
    assert parsed.tzinfo is UTC
    assert parse_time("2026-03-03T23:06:07-06:00") == MOMENT.replace(microsecond=0)
    assert format_time(MOMENT.astimezone(timezone(timedelta(hours=5)))) == "2026-03-04T05:06:07Z"


def test_a_moment_without_a_zone_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="zone"):
        format_time(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-03-04",
        "2026-03-04T05:06:07",
        "2026-03-04T05:06:07Z\n",
        " 2026-03-04T05:06:07Z",
        "2026-03-04 05:06:07Z",
        "2026-03-04t05:06:07z",
        "2026-3-4T5:6:7Z",
        "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-03-04T24:00:00Z",
        "2026-03-04T05:06:60Z",
        "0000-01-01T00:00:00Z",
        "2026-03-04T05:06:07.Z",
        "2026-03-04T05:06:07,5Z",
        "2026-03-04T05:06:07+0100",
        "2026-03-04T05:06:07+24:00",
        "2026-03-04T05:06:07+01:60",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "２026-03-04T05:06:07Z",
        "2026-03-04T05:06:07." + "1" * 1000 + "Z",
        None,
        0,
        [],
    ],
)
def test_garbage_is_refused_and_shown(text: Any) -> None:
    for parse in (parse_time, parse_micro_time):
        with pytest.raises(InvalidInput, match="RFC 3339") as caught:
            parse(text)
        assert len(str(caught.value)) < 200


@given(moments)
def test_a_micro_time_reads_back_exactly(moment: datetime) -> None:
    assert parse_micro_time(format_micro_time(moment)) == moment


@given(moments)
def test_a_time_is_never_later_than_the_moment(moment: datetime) -> None:
    assert timedelta() <= moment - parse_time(format_time(moment)) < timedelta(seconds=1)


@given(st.text(max_size=30) | st.from_regex(r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert format_time(parse_time(text)) == text
    except InvalidInput as e:
        assert str(e)


def test_a_time_after_another_is_at_most_the_last_one() -> None:
    assert after(MOMENT, 1.5) == MOMENT + timedelta(seconds=1.5)
    for beyond in (2**63, 1e12):
        assert format_time(after(MOMENT, beyond)) == "9999-12-31T23:59:59Z"
