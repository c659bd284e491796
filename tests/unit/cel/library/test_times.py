import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.library.times import LIBRARY, duration_text, parse_duration, parse_timestamp, timestamp_text
from devlet.cel.values import INT_MAX, INT_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, CelError, Duration, Timestamp

CALLS = {overload.id: overload.call for function in LIBRARY.functions for overload in function.overloads}
SECOND = 10**9
HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("1h30m", 5400 * SECOND),
        ("-1.5s", -1_500_000_000),
        (".5s", 500_000_000),
        ("5.s", 5 * SECOND),
        ("1ns", 1),
        ("1us1µs1μs", 3000),
        ("1ms", 10**6),
        ("1.0000000000000001h", HOUR),
        ("2562047h47m16.854775807s", INT_MAX),
        ("-2562047h47m16.854775808s", INT_MIN),
    ],
)
def test_durations_are_read(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == Duration(nanoseconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "-",
        "s",
        ".s",
        "1d",
        "1h 2s",
        " 1s",
        "1s ",
        "--1s",
        "1.2.3s",
        "2562047h47m16.854775808s",
        "9" * 40 + "s",
    ],
)
def test_an_invalid_duration_is_rejected(text: str) -> None:
    assert parse_duration(text) is None


@given(st.integers(-(10**15), 10**15))
def test_the_text_of_a_duration_reads_back_up_to_a_nanosecond(nanoseconds: int) -> None:
    value = parse_duration(duration_text(Duration(nanoseconds)))
    assert value and abs(value.nanoseconds - nanoseconds) <= 1


def test_durations_are_written_in_seconds() -> None:
    assert duration_text(Duration(HOUR + 1)) == "3600.000000001s"
    assert duration_text(Duration(INT_MIN)) == "-9223372036.854776s"
    assert duration_text(Duration(1736910879)) == "1.7369108789999999s"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T0:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-02-29T00:00:00,123Z", "2020-02-29T00:00:00.123Z"),
        ("2020-01-01T00:00:00.1234567891Z", "2020-01-01T00:00:00.123456789Z"),
        ("2020-01-01T00:00:00+02:00", "2020-01-01T00:00:00+02:00"),
        ("2020-01-01T00:00:00-00:30", "2020-01-01T00:00:00-00:30"),
        ("2020-01-01T00:00:00+24:60", "2020-01-01T00:00:00+25:00"),
        ("2020-01-01T00:00:00-00:00", "2020-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
    ],
)
def test_times_are_read_and_written_in_their_zone(text: str, same: str) -> None:
    value = parse_timestamp(text)
    assert value is not None
    assert timestamp_text(value) == same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2020-01-01",
        "2020-01-01t00:00:00z",
        "2020-01-01T00:00:00",
        "2020-01-01T00:00:00.Z",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:60:00Z",
        "2020-01-01T00:00:60Z",
        "2020-02-30T00:00:00Z",
        "2020-01-01T00:00:00+25:00",
        "2020-01-01T00:00:00Z ",
        "٢٠٢٠-01-01T00:00:00Z",
    ],
)
def test_an_invalid_time_is_rejected(text: str) -> None:
    assert parse_timestamp(text) is None


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00Z", "0000-02-29T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"]
)
def test_a_time_outside_of_the_years_1_to_9999_is_an_error(text: str) -> None:
    with pytest.raises(CelError, match="timestamp overflow"):
        parse_timestamp(text)


@given(st.integers(TIMESTAMP_MIN, TIMESTAMP_MAX))
def test_the_text_of_a_time_reads_back(nanoseconds: int) -> None:
    assert parse_timestamp(timestamp_text(Timestamp(nanoseconds))) == Timestamp(nanoseconds)


NEW_YEAR = parse_timestamp("2021-01-01T00:30:15.25Z")


@pytest.mark.parametrize(
    ("name", "in_utc", "in_new_york"),
    [
        ("timestamp_to_year", 2021, 2020),
        ("timestamp_to_month", 0, 11),
        ("timestamp_to_day_of_year", 0, 365),
        ("timestamp_to_day_of_month", 0, 30),
        ("timestamp_to_day_of_month_1_based", 1, 31),
        ("timestamp_to_day_of_week", 5, 4),
        ("timestamp_to_hours", 0, 19),
        ("timestamp_to_minutes", 30, 30),
        ("timestamp_to_milliseconds", 250, 250),
    ],
)
def test_parts_of_a_time_are_those_of_the_zone(name: str, in_utc: int, in_new_york: int) -> None:
    assert CALLS[name](NEW_YEAR) == in_utc
    assert CALLS[f"{name}_with_tz"](NEW_YEAR, "America/New_York") == in_new_york
    assert CALLS[f"{name}_with_tz"](NEW_YEAR, "-05:00") == in_new_york


def test_seconds_have_an_overload_with_another_name() -> None:
    assert CALLS["timestamp_to_seconds"](NEW_YEAR) == 15
    assert CALLS["timestamp_to_seconds_tz"](NEW_YEAR, "UTC") == 15


@pytest.mark.parametrize(
    ("zone", "hour"), [("", 0), ("Local", 0), ("+02:00", 2), ("02:00", 2), ("-02:30", 22), ("-00:30", 0), ("+99:00", 3)]
)
def test_zones_can_be_offsets(zone: str, hour: int) -> None:
    assert CALLS["timestamp_to_hours_with_tz"](NEW_YEAR, zone) == hour


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("Europe/Nix", "unknown time zone Europe/Nix"),
        ("../x", "time: invalid location name"),
        ("/etc/passwd", "time: invalid location name"),
        ("\0", "unknown time zone \0"),
        ("x" * 5000, f"unknown time zone {'x' * 5000}"),
        ("a:b", 'strconv.Atoi: parsing "a": invalid syntax'),
        ("1:", 'strconv.Atoi: parsing "": invalid syntax'),
        ("99999999999999999999:0", 'strconv.Atoi: parsing "99999999999999999999": value out of range'),
    ],
)
def test_a_zone_that_does_not_exist_is_an_error(zone: str, text: str) -> None:
    with pytest.raises(CelError) as caught:
        CALLS["timestamp_to_hours_with_tz"](NEW_YEAR, zone)
    assert caught.value.message == text


def test_a_zone_can_lead_out_of_the_years_that_times_have() -> None:
    year = CALLS["timestamp_to_year_with_tz"]
    assert year(Timestamp(TIMESTAMP_MAX), "+23:00") == 10000
    assert year(Timestamp(TIMESTAMP_MIN), "America/New_York") == 0


def test_durations_are_counted_in_whole_units_towards_zero() -> None:
    value = Duration(-(HOUR + 90 * SECOND + 1_500_000))
    names = ("duration_to_hours", "duration_to_minutes", "duration_to_seconds", "duration_to_milliseconds")
    assert [CALLS[name](value) for name in names] == [-1, -61, -3690, -3690001]


def test_a_long_duration_almost_an_hour_is_rounded_as_in_the_reference() -> None:
    assert CALLS["duration_to_hours"](Duration(2562047 * HOUR - 1)) == 2562047
