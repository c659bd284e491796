import pytest

from devlet.errors import Cause
from devlet.objects.documents import Document
from devlet.objects.validation import event
from devlet.objects.validation.field_errors import invalid, required

NEW: Document = {
    "metadata": {"name": "e", "namespace": "ns"},
    "involvedObject": {"namespace": "ns"},
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "reportingComponent": "scheduler.example.com/main",
    "reportingInstance": "host-1",
    "action": "Scheduling",
    "reason": "Scheduled",
    "type": "Normal",
    "firstTimestamp": None,
    "source": {},
}


@pytest.mark.spec("KA-7.4")
@pytest.mark.parametrize(
    ("namespace", "involved", "matches"),
    [
        ("ns", "ns", True),
        ("ns", "other", False),
        ("default", "", True),
        ("kube-system", "", True),
        ("ns", "", False),
        ("default", "ns", False),
    ],
)
def test_an_event_is_in_the_namespace_of_its_object(namespace: str, involved: str, matches: bool) -> None:
    document = {"metadata": {"namespace": namespace}, "involvedObject": {"namespace": involved}}
    expected = [] if matches else [invalid("involvedObject.namespace", involved, "does not match event.namespace")]
    assert list(event.check(document)) == expected


def test_a_complete_event_of_the_new_shape_is_accepted() -> None:
    series = {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"}
    assert list(event.check_new_shape({**NEW, "series": series, "message": "x" * 1024})) == []


@pytest.mark.spec("KA-7.4")
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"eventTime": None}, required("eventTime")),
        ({"reportingComponent": ""}, required("reportingController")),
        ({"reportingInstance": ""}, required("reportingInstance")),
        ({"reportingInstance": "x" * 129}, invalid("reportingInstance", "", "can have at most 128 characters")),
        ({"action": ""}, required("action")),
        ({"action": "x" * 129}, invalid("action", "", "can have at most 128 characters")),
        ({"reason": ""}, required("reason")),
        ({"reason": "x" * 129}, invalid("reason", "", "can have at most 128 characters")),
        ({"type": "Bad"}, invalid("type", "", "has invalid value: Bad")),
        ({"message": "x" * 1025}, invalid("message", "", "can have at most 1024 characters")),
        ({"count": 1}, invalid("count", "", "needs to be unset")),
        ({"source": {"component": "x"}}, invalid("source", "", "needs to be unset")),
        ({"series": {"count": 1, "lastObservedTime": "t"}}, invalid("series.count", "", "should be at least 2")),
        ({"series": {"count": 2}}, required("series.lastObservedTime")),
    ],
)
def test_an_event_of_the_new_shape_says_who_reports_what_and_when(changes: Document, cause: Cause) -> None:
    assert list(event.check_new_shape({**NEW, **changes})) == [cause]
