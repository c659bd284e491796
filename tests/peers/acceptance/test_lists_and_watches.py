"""Lists in pages and watches, over plain HTTP."""

import time
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

INITIAL = "sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=2"


@pytest.mark.spec("KA-10.64")
async def test_a_list_comes_in_pages_of_one_version(site: "Site") -> None:
    names = [f"cm{i}" for i in range(5)]
    for name in names:
        site.created("configmaps", site.config_map(name))
    query, pages = "?labelSelector=a%3Db&limit=2", []
    while query:
        pages.append(site.get("configmaps", query=query).document)
        token = pages[-1]["metadata"].get("continue")
        query = f"?labelSelector=a%3Db&limit=2&continue={quote(token)}" if token else ""
        site.created("configmaps", site.config_map(f"late{len(pages)}"))  # of another version: in none of the pages
    assert [[item["metadata"]["name"] for item in page["items"]] for page in pages] == [
        names[:2],
        names[2:4],
        names[4:],
    ]
    assert len({page["metadata"]["resourceVersion"] for page in pages}) == 1


@pytest.mark.spec("KA-10.65")
async def test_a_watch_begins_with_what_is_there_if_asked_to(site: "Site") -> None:
    site.created("configmaps", site.config_map("cm1"))
    site.created("configmaps", site.config_map("cm2"))
    query = f"?labelSelector=a%3Db&{INITIAL}&resourceVersionMatch=NotOlderThan"
    began = time.monotonic()
    with site.server.watch(site.path("configmaps") + query) as stream:
        added = [stream.next() for _ in range(2)]
        assert [event and event["type"] for event in added] == ["ADDED", "ADDED"]
        assert {event["object"]["metadata"]["name"] for event in added if event} == {"cm1", "cm2"}
        mark = stream.next()
        assert mark
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert (mark["object"]["kind"], mark["object"]["apiVersion"]) == ("ConfigMap", "v1")
        assert [event for event in stream.rest() if event["type"] != "BOOKMARK"] == []
    assert time.monotonic() - began > 1


@pytest.mark.spec("KA-10.66")
async def test_such_a_watch_says_how_old_what_is_there_may_be(site: "Site") -> None:
    answer = site.get("configmaps", query=f"?watch=true&{INITIAL}")
    assert answer.summary == "422 Invalid"
    assert [cause["field"] for cause in answer.causes] == ["resourceVersionMatch"]


@pytest.mark.spec("KA-10.67")
async def test_a_watch_with_a_selector_sees_objects_come_and_go(site: "Site") -> None:
    def label(value: str) -> None:
        assert site.patch("configmaps", "cm1", {"metadata": {"labels": {"n": value}}}).code == 200

    document = site.config_map()
    document["metadata"]["labels"] = {"n": "2"}
    version = site.created("configmaps", document)["metadata"]["resourceVersion"]
    query = f"?labelSelector=n%3D1&resourceVersion={version}&timeoutSeconds=2"
    with site.server.watch(site.path("configmaps") + query) as stream:
        label("1")
        site.patch("configmaps", "cm1", {"data": {"k": "x"}})
        label("7")
        gone = site.get("configmaps", "cm1").document["metadata"]["resourceVersion"]
        site.delete("configmaps", "cm1")
        events = stream.rest()
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event["object"]["metadata"]["labels"]["n"] for event in events] == ["1", "1", "1"]
    assert events[-1]["object"]["metadata"]["resourceVersion"] == gone


@pytest.mark.spec("KA-10.68")
async def test_a_watch_from_a_forgotten_version_has_expired(site: "Site") -> None:
    # Events, because kube-apiserver has no cache of them in which an old version might live on.
    site.server.forget_history()
    with site.server.watch(site.path("events") + "?resourceVersion=1&timeoutSeconds=5") as stream:
        event = stream.next()
        assert event
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert stream.next() is None


@pytest.mark.spec("KA-10.69")
async def test_a_list_of_a_version_to_come_times_out(site: "Site") -> None:
    future = site.server.newest_version() + 10**9
    answer = site.get("configmaps", query=f"?resourceVersion={future}")
    assert answer.summary == "504 Timeout"
    assert [cause["reason"] for cause in answer.causes] == ["ResourceVersionTooLarge"]
    assert answer.document["details"]["retryAfterSeconds"] == 1
