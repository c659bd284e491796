from datetime import UTC, datetime

import pytest

from devlet.cli.event_lines import last_seen, row, seen, source

NOW = datetime(2026, 1, 2, 0, 10, tzinfo=UTC)
FIRST, LAST = "2026-01-02T00:00:00Z", "2026-01-02T00:05:00.5Z"


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"lastTimestamp": LAST}, "4m59s"),
        ({"eventTime": FIRST}, "10m"),
        ({"firstTimestamp": FIRST, "lastTimestamp": LAST, "count": 1}, "4m59s"),
        ({"firstTimestamp": FIRST, "lastTimestamp": LAST, "count": 3}, "4m59s (x3 over 10m)"),
        ({"eventTime": FIRST, "series": {"count": 4, "lastObservedTime": LAST}}, "4m59s (x4 over 10m)"),
        ({"lastTimestamp": LAST, "count": 3}, "4m59s"),
        ({}, "<unknown>"),
        ({"lastTimestamp": "yesterday"}, "<unknown>"),
    ],
)
def test_when_an_event_was_seen(event: dict[str, object], text: str) -> None:
    assert seen(event, NOW) == text


def test_an_event_without_time_was_before_all_others() -> None:
    assert last_seen({}) < last_seen({"eventTime": FIRST}) < last_seen({"eventTime": FIRST, "lastTimestamp": LAST})


def test_a_row_is_on_one_line() -> None:
    event = {
        "type": "Warning",
        "reason": "Bad",
        "involvedObject": {"kind": "Pod", "name": "p"},
        "message": " a\nb\x1b[1m",
    }
    assert row(event, NOW) == ["<unknown>", "Warning", "Bad", "Pod/p", "a..."]


def test_the_source_is_the_component_and_its_host() -> None:
    assert source({"source": {"component": "c", "host": "h"}}) == "c, h"
    assert source({"reportingComponent": "r"}) == "r"
