"""Views of small core objects."""

import pytest

from devlet.objects.conversion import convert
from devlet.objects.documents import view
from devlet.objects.types.core import ConfigMap, Event, Namespace, Secret, ServiceAccount


def test_small_objects_are_read() -> None:
    assert view(Namespace, {"spec": {"finalizers": ["kubernetes"]}}).spec.finalizers == ("kubernetes",)
    assert view(ConfigMap, {"data": {"a": "b"}, "immutable": True}).immutable
    assert view(Secret, {"type": "Opaque", "data": {"a": "Yg=="}}).data == {"a": "Yg=="}
    assert view(ServiceAccount, {"imagePullSecrets": [{"name": "s"}]}).image_pull_secrets[0].name == "s"


@pytest.mark.spec("KA-A1")
def test_an_event_of_either_shape_is_read_in_the_core_shape() -> None:
    document = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "regarding": {"kind": "Pod", "name": "p"},
        "note": "text",
        "eventTime": "2026-01-02T03:04:05.123456Z",
        "deprecatedFirstTimestamp": None,
        "series": {"count": 4, "lastObservedTime": None},
    }
    event = view(Event, convert(document, "v1"))
    assert event.involved_object.name == "p"
    assert event.message == "text"
    assert event.first_timestamp is None
    assert event.series is not None
    assert event.series.count == 4
