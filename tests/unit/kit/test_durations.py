import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.kit import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2", 2), ("1.5", 1.5), ("2s", 2), ("500ms", 0.5), ("1m30s", 90), ("1h0m0.5s", 3600.5), ("0", 0)],
)
def test_durations_are_read_as_seconds(text: str, seconds: float) -> None:
    assert durations.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 s", "1d", "2s ", "1e3", "٣s", "nan", "inf", "9" * 65])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        durations.parse(text)


@given(st.integers(0, 10_000), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_pieces_add_up(hours: int, minutes: int, seconds: int, millis: int) -> None:
    expected = hours * 3600 + minutes * 60 + seconds + millis / 1000
    assert durations.parse(f"{hours}h{minutes}m{seconds}s{millis}ms") == pytest.approx(expected)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert durations.parse(text) >= 0
    except ValueError as e:
        assert str(e)
