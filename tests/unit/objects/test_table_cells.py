"""Ages and labels."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.table_cells import AGE, duration, label_text, selector_text, since, wide

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

pytestmark = pytest.mark.spec("KA-5")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (7 * DAY + 5 * HOUR, "7d5h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 3 * DAY, "2y3d"),
        (8 * YEAR + 3 * DAY, "8y"),
    ],
)
def test_a_duration_is_printed_as_kubectl_prints_it(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@given(st.floats(min_value=-1e12, max_value=1e12))
def test_every_duration_has_a_text(seconds: float) -> None:
    assert duration(seconds)


@pytest.mark.parametrize("moment", [None, "", "yesterday", 7, {}])
def test_what_is_no_time_is_unknown(moment: object) -> None:
    assert since(moment, NOW) == "<unknown>"


def test_both_kinds_of_times_are_read() -> None:
    assert since("2026-01-02T03:04:00Z", NOW) == "5s"
    assert since("2026-01-02T03:04:00.999999Z", NOW) == "4s"


def test_labels_are_sorted() -> None:
    assert label_text({"b": "c", "a": "b"}) == "a=b,b=c"
    assert label_text({}) == label_text(None) == "<none>"


def test_a_selector_is_written_as_on_a_command_line() -> None:
    expressions = [
        {"key": "x", "operator": "NotIn", "values": ["b", "a"]},
        {"key": "b", "operator": "In", "values": ["c"]},
        {"key": "z", "operator": "Exists"},
        {"key": "y", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"c": "d"}, "matchExpressions": expressions}
    assert selector_text(selector) == "b in (c),c=d,x notin (a,b),!y,z"
    assert selector_text({}) == selector_text(None) == "<none>"


def test_a_column_says_what_clients_need() -> None:
    assert list(AGE.document()) == ["name", "type", "format", "description", "priority"]
    assert wide("IP").document()["priority"] == 1
