import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.client import FieldValidation, ListOptions, VersionMatch, WatchOptions, WriteOptions
from devlet.cluster.remote import paths
from devlet.errors import BadRequest
from devlet.objects.kinds import NODES, PODS, RESOURCE_CLAIMS


def test_resources_have_their_places() -> None:
    assert paths.collection(PODS, "") == "/api/v1/pods"
    assert paths.collection(PODS, "ns") == "/api/v1/namespaces/ns/pods"
    assert paths.collection(NODES, "ignored") == "/api/v1/nodes"
    assert paths.item(RESOURCE_CLAIMS, "c", "ns") == "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"
    assert paths.item(PODS, "p", "ns", "status") == "/api/v1/namespaces/ns/pods/p/status"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "a\nb"])
def test_a_name_cannot_lead_elsewhere(name: str) -> None:
    with pytest.raises(BadRequest):
        paths.item(PODS, name, "ns")
    if name:
        with pytest.raises(BadRequest, match="namespace"):
            paths.collection(PODS, name)


@given(st.text(min_size=1, max_size=20))
def test_a_name_is_one_segment_or_refused(name: str) -> None:
    try:
        path = paths.item(NODES, name, "")
    except BadRequest:
        return
    assert path.startswith("/api/v1/nodes/") and path.count("/") == 4 and path.isascii()
    assert "?" not in path and "#" not in path


def test_only_options_that_are_set_are_sent() -> None:
    assert paths.list_query(ListOptions()) == []
    assert paths.list_query(ListOptions("a=b", "c=d", 5, "t", "7", VersionMatch.EXACT)) == [
        ("labelSelector", "a=b"),
        ("fieldSelector", "c=d"),
        ("limit", "5"),
        ("continue", "t"),
        ("resourceVersion", "7"),
        ("resourceVersionMatch", "Exact"),
    ]
    assert paths.write_query(WriteOptions()) == [("fieldValidation", "Ignore")]
    options = WriteOptions(dry_run=True, field_manager="m", field_validation=FieldValidation.STRICT)
    assert paths.write_query(options) == [("dryRun", "All"), ("fieldManager", "m"), ("fieldValidation", "Strict")]


def test_a_watch_always_asks_for_bookmarks() -> None:
    assert paths.watch_query(WatchOptions()) == [("watch", "true"), ("allowWatchBookmarks", "true")]
    options = WatchOptions(send_initial_events=False, version_match=VersionMatch.NOT_OLDER_THAN, timeout=0.2)
    assert paths.watch_query(options)[2:] == [
        ("resourceVersionMatch", "NotOlderThan"),
        ("sendInitialEvents", "false"),
        ("timeoutSeconds", "1"),
    ]
