from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cli.events import last_seen, row, seen, source

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run


EVENTS = "/api/v1/namespaces/default/events"


def event(name: str, seen: str, type_: str = "Normal") -> dict[str, Any]:
    about = {"kind": "Pod", "name": name}
    return {"involvedObject": about, "type": type_, "reason": "Seen", "message": f"saw {name}\n", "lastTimestamp": seen}


@pytest.fixture
def three(api: "API") -> None:
    api.put(f"{EVENTS}/1", event("late", "2026-01-03T00:00:00Z"))
    api.put(f"{EVENTS}/2", event("early", "2026-01-01T00:00:00Z", "Warning"))
    api.put(f"{EVENTS}/3", event("middle", "2026-01-02T00:00:00Z"))


def messages(run: "Run") -> list[str]:
    return [line.rpartition(" ")[2] for line in run.out.splitlines()]


@pytest.mark.usefixtures("three")
def test_the_oldest_comes_first(run: "Run") -> None:
    assert run("events") == 0
    assert run.out.split()[:6] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert messages(run) == ["MESSAGE", "early", "middle", "late"]


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (["--for", "pod/late"], ["late"]),
        (["--for=po/nope"], []),
        (["--types=Warning"], ["early"]),
        (["--types", "normal,warning"], ["early", "middle", "late"]),
        (["-A"], ["early", "middle", "late"]),
        (["-n", "empty"], []),
    ],
)
def test_events_are_chosen(run: "Run", flags: list[str], found: list[str]) -> None:
    assert run("events", "--no-headers", *flags) == 0
    assert messages(run) == found
    assert run.err == "" if found else "No events found" in run.err


@pytest.mark.usefixtures("three")
def test_other_formats_hold_whole_events_in_the_same_order(run: "Run") -> None:
    assert run("events", "-o", "name") == 0
    assert run.out == "event/2\nevent/3\nevent/1\n"
    assert run("events", "-o", "jsonpath={.items[*].involvedObject.name}") == 0
    assert run.out == "early middle late"


@pytest.mark.usefixtures("three")
def test_new_events_are_followed(run: "Run", api: "API") -> None:
    def change() -> None:
        api.put(f"{EVENTS}/4", event("new", "2026-01-04T00:00:00Z"))
        api.answers["GET", EVENTS] = (503, {"kind": "Status", "code": 503, "message": "over"})
        api.stopped = True

    api.on_watch = change
    assert run("events", "-w", "--no-headers") == 1
    assert messages(run) == ["early", "middle", "late", "new"]


@pytest.mark.parametrize("flags", [["--for", "pod"], ["--for=pod/a/b"], ["--types=Bad"]])
def test_what_is_wrong_is_said(run: "Run", flags: list[str]) -> None:
    assert run("events", *flags) == 1
    assert "expected" in run.err or "use TYPE/NAME" in run.err


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
