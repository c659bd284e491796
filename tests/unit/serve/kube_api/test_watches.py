"""Watches over HTTP."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import MergePatch
from devlet.objects.kinds import CONFIG_MAPS
from devlet.testing.waiting import deadline

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio

MAPS = "/api/v1/namespaces/default/configmaps"


async def lines(served: "Served", query: str, count: int, accept: str = "") -> list[dict[str, Any]]:
    """Return the first `count` events of a watch."""
    headers = {"Authorization": f"Bearer {served.token}", "Accept": accept}
    found: list[dict[str, Any]] = []
    with deadline():
        async with served.session.get(f"{served.url}{MAPS}?watch=1&{query}", headers=headers, ssl=served.tls) as answer:
            assert answer.status == 200
            async for line in answer.content:
                found.append(json.loads(line))
                if len(found) == count:
                    break
    return found


async def create(served: "Served", name: str) -> str:
    made = await served.store.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")
    return str(made["metadata"]["resourceVersion"])


async def test_a_watch_list_ends_its_initial_events_with_a_bookmark(served: "Served") -> None:
    version = await create(served, "a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    added, bookmark = await lines(served, query, 2)
    assert (added["type"], added["object"]["kind"], added["object"]["metadata"]["name"]) == ("ADDED", "ConfigMap", "a")
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"] == {
        "resourceVersion": version,
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


async def test_changes_arrive_one_line_each(served: "Served") -> None:
    version = await create(served, "a")
    await served.store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"x": "1"}}), "default")
    await served.store.delete(CONFIG_MAPS, "a", "default")
    frames = await lines(served, f"resourceVersion={version}", 2)
    assert [frame["type"] for frame in frames] == ["MODIFIED", "DELETED"]
    assert frames[0]["object"]["data"] == {"x": "1"}


async def test_an_expired_version_is_an_error_in_the_stream(served: "Served") -> None:
    (frame,) = await lines(served, "resourceVersion=1", 1)
    assert (frame["type"], frame["object"]["code"], frame["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_watch_ends_after_its_timeout(served: "Served") -> None:
    assert await lines(served, "timeoutSeconds=1&resourceVersion=" + str(served.store.version), 99) == []


async def test_wrong_options_are_refused_before_the_stream_begins(served: "Served") -> None:
    code, status = await served.request("GET", f"{MAPS}?watch=1&sendInitialEvents=true")
    assert (code, status["reason"]) == (422, "Invalid")


async def test_events_can_be_tables_and_partial_metadata(served: "Served") -> None:
    await create(served, "a")
    await create(served, "b")
    first, second = await lines(served, "", 2, "application/json;as=Table;v=v1;g=meta.k8s.io")
    assert first["object"]["columnDefinitions"]
    assert not second["object"].get("columnDefinitions")
    (frame,) = await lines(served, "", 1, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    assert frame["object"]["kind"] == "PartialObjectMetadata"
