import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from aiohttp import web

from devlet.cluster.client import (
    ApplyPatch,
    Cluster,
    DeleteOptions,
    EventType,
    JsonPatch,
    ListOptions,
    MergePatch,
    Patch,
    Preconditions,
    Propagation,
    StrategicMergePatch,
    WatchOptions,
    WriteOptions,
)
from devlet.cluster.informer import Informer
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.connection import Connection
from devlet.cluster.remote.settings import Settings
from devlet.errors import BadRequest, DevletError, Expired, NotFound, TooLarge, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.parts import running
from devlet.objects.kinds import CONFIG_MAPS, NODES, PODS, RESOURCE_CLAIMS
from devlet.objects.statuses import failure
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class Recorder:
    """Answers every request with the same document and keeps what was asked."""

    def __init__(self, answer: Any = None, **headers: str) -> None:
        self.answer = {"kind": "Pod", "metadata": {"name": "p"}} if answer is None else answer
        self.headers = headers
        self.asked: list[tuple[str, dict[str, str], str, Any]] = []

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        asked = f"{request.method} {request.path}"
        content = msgspec.json.decode(body) if body else None
        self.asked.append((asked, dict(request.query), request.headers.get("Content-Type", ""), content))
        return web.json_response(self.answer, headers=self.headers)


@pytest.fixture
async def cluster(serve: Any) -> AsyncIterator[tuple[RemoteCluster, Recorder]]:
    recorder = Recorder()
    async with connected(Connection(await serve(recorder))) as cluster:
        yield cluster, recorder


def frame(type_: str, version: str, name: str = "a", **more: Any) -> bytes:
    metadata = {"name": name, "namespace": "ns", "resourceVersion": version, **more}
    return msgspec.json.encode({"type": type_, "object": {"kind": "ConfigMap", "metadata": metadata}}) + b"\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


async def test_the_client_is_a_cluster(cluster: tuple[RemoteCluster, Recorder]) -> None:
    port: Cluster = cluster[0]  # for the type checker
    assert all(hasattr(port, name) for name in vars(Cluster) if not name.startswith("_"))


async def test_get_asks_for_one_object(cluster: tuple[RemoteCluster, Recorder]) -> None:
    remote, recorder = cluster
    assert await remote.get(PODS, "p", "ns") == recorder.answer
    assert recorder.asked == [("GET /api/v1/namespaces/ns/pods/p", {}, "", None)]


async def test_list_asks_for_a_page(serve: Any) -> None:
    recorder = Recorder({"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "c"}}]})
    async with connected(Connection(await serve(recorder))) as remote:
        page = await remote.list(RESOURCE_CLAIMS, options=ListOptions("a=b", limit=2))
    assert [item["kind"] for item in page.items] == ["ResourceClaim"]
    query = {"labelSelector": "a=b", "limit": "2"}
    assert recorder.asked == [("GET /apis/resource.k8s.io/v1/resourceclaims", query, "", None)]


async def test_create_posts_to_the_collection_or_a_subresource(cluster: tuple[RemoteCluster, Recorder]) -> None:
    remote, recorder = cluster
    await remote.create(PODS, {"a": 1}, "ns", options=WriteOptions(field_manager="m", dry_run=True))
    await remote.create(PODS, {"b": 2}, "ns", name="p", subresource="binding")
    query = {"fieldManager": "m", "dryRun": "All", "fieldValidation": "Ignore"}
    assert recorder.asked == [
        ("POST /api/v1/namespaces/ns/pods", query, "application/json", {"a": 1}),
        (
            "POST /api/v1/namespaces/ns/pods/p/binding",
            {"fieldValidation": "Ignore"},
            "application/json",
            {"b": 2},
        ),
    ]


async def test_update_puts_where_the_metadata_says(cluster: tuple[RemoteCluster, Recorder]) -> None:
    remote, recorder = cluster
    await remote.update(PODS, {"metadata": {"name": "p", "namespace": "ns"}}, subresource="status")
    await remote.update(NODES, {"metadata": {"name": "n"}})
    assert [asked[0] for asked in recorder.asked] == [
        "PUT /api/v1/namespaces/ns/pods/p/status",
        "PUT /api/v1/nodes/n",
    ]
    with pytest.raises(BadRequest, match="name must be provided"):
        await remote.update(PODS, {"metadata": {}})


@pytest.mark.parametrize(
    ("patch", "content_type", "query"),
    [
        (JsonPatch([{"op": "test"}]), "application/json-patch+json", {}),
        (MergePatch({"a": None}), "application/merge-patch+json", {}),
        (StrategicMergePatch({"a": 1}), "application/strategic-merge-patch+json", {}),
        (ApplyPatch({"a": 1}), "application/apply-patch+yaml", {}),
        (ApplyPatch({"a": 1}, force=True), "application/apply-patch+yaml", {"force": "true"}),
    ],
)
async def test_each_patch_has_its_content_type(
    cluster: tuple[RemoteCluster, Recorder], patch: Patch, content_type: str, query: dict[str, str]
) -> None:
    remote, recorder = cluster
    await remote.patch(PODS, "p", patch, "ns", subresource="status", options=WriteOptions(field_manager="m"))
    content = patch.operations if isinstance(patch, JsonPatch) else patch.document
    query = {"fieldManager": "m", "fieldValidation": "Ignore", **query}
    assert recorder.asked == [("PATCH /api/v1/namespaces/ns/pods/p/status", query, content_type, content)]


async def test_delete_says_how(cluster: tuple[RemoteCluster, Recorder]) -> None:
    remote, recorder = cluster
    await remote.delete(PODS, "p", "ns")
    options = DeleteOptions(0, Propagation.FOREGROUND, Preconditions("u", "5"), dry_run=True)
    await remote.delete(PODS, "p", "ns", options)
    plain: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    full = {
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u", "resourceVersion": "5"},
        "dryRun": ["All"],
    }
    assert [asked[3] for asked in recorder.asked] == [plain, plain | full]


async def test_delete_collection_selects(serve: Any) -> None:
    recorder = Recorder({"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": [{"metadata": {}}]})
    async with connected(Connection(await serve(recorder))) as remote:
        deleted = await remote.delete_collection(PODS, "ns", DeleteOptions(grace_period=0), ListOptions("a=b"))
    assert len(deleted.items) == 1
    asked, query, _, body = recorder.asked[0]
    assert (asked, query) == ("DELETE /api/v1/namespaces/ns/pods", {"labelSelector": "a=b"})
    assert body["gracePeriodSeconds"] == 0


async def test_warnings_are_passed_to_the_caller(serve: Any) -> None:
    recorder = Recorder(Warning='299 - "unknown field \\"foo\\""')
    heard: list[str] = []
    async with connected(Connection(await serve(recorder))) as remote:
        await remote.create(PODS, {}, "ns", options=WriteOptions(warn=heard.append))
        await remote.create(PODS, {}, "ns")
    assert heard == ['unknown field "foo"']


@pytest.mark.parametrize("document", [{"a": object()}, {(1,): "b"}, {"a": "\ud800"}])
async def test_what_json_cannot_say_is_refused(
    cluster: tuple[RemoteCluster, Recorder], document: dict[str, Any]
) -> None:
    remote, recorder = cluster
    with pytest.raises(BadRequest, match="cannot be written as JSON"):
        await remote.create(PODS, document, "ns")
    assert recorder.asked == []


async def test_an_answer_that_is_not_an_object_is_an_error(serve: Any) -> None:
    async with connected(Connection(await serve(Recorder([])))) as remote:
        with pytest.raises(DevletError, match="not a JSON object"):
            await remote.get(PODS, "p", "ns")


@asynccontextmanager
async def watching(serve_raw: Any, *said: bytes, wait: bool = False, **options: Any) -> AsyncIterator[Any]:
    """A watch of a server that says these things after its header and then hangs up, or waits for ever."""
    settings = Settings(silence=0.1, max_event_bytes=1000)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        for part in said:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        if wait:
            await reader.read()
        writer.close()
        await writer.wait_closed()

    async with connected(Connection(await serve_raw(script)), settings) as remote:
        async with remote.watch(CONFIG_MAPS, "ns", WatchOptions(**options)) as events:
            yield events


async def versions(events: Any) -> list[str]:
    return [event.object["metadata"]["resourceVersion"] async for event in events]


async def test_a_watch_ends_when_the_server_closes_it(serve_raw: Any) -> None:
    said = chunk(frame("ADDED", "1") + frame("MODIFIED", "2")), chunk(frame("DELETED", "3")), b"0\r\n\r\n"
    async with watching(serve_raw, *said) as events:
        found = [(event.type, event.object["metadata"]["resourceVersion"]) async for event in events]
    assert found == [(EventType.ADDED, "1"), (EventType.MODIFIED, "2"), (EventType.DELETED, "3")]


async def test_events_are_cut_anywhere(serve_raw: Any) -> None:
    text = frame("ADDED", "1", note="ä") + frame("ADDED", "2")
    async with watching(serve_raw, *(chunk(bytes([byte])) for byte in text), b"0\r\n\r\n") as events:
        assert await versions(events) == ["1", "2"]


async def test_a_watch_that_breaks_off_in_a_chunk_just_ends(serve_raw: Any) -> None:
    half = frame("ADDED", "2")[:20]
    async with watching(serve_raw, chunk(frame("ADDED", "1")), b"ffff\r\n" + half) as events:
        assert await versions(events) in (["1"], [])


async def test_half_an_event_before_a_clean_end_is_not_an_event(serve_raw: Any) -> None:
    async with watching(serve_raw, chunk(frame("ADDED", "1") + frame("ADDED", "2")[:-5]), b"0\r\n\r\n") as events:
        assert await versions(events) == ["1"]


async def test_a_watch_of_a_silent_server_ends(serve_raw: Any) -> None:
    async with watching(serve_raw, chunk(frame("ADDED", "1")), wait=True) as events:
        with deadline():
            assert await versions(events) == ["1"]


async def test_an_error_in_the_stream_is_raised(serve_raw: Any) -> None:
    status = failure(410, "Expired", "too old resource version: 300 (543)")
    gone = msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"
    async with watching(serve_raw, chunk(frame("ADDED", "1") + gone)) as events:
        await anext(events)
        with pytest.raises(Expired, match="too old resource version"):
            await anext(events)


async def test_rubbish_in_the_stream_is_an_error(serve_raw: Any) -> None:
    async with watching(serve_raw, chunk(b"<html>\n"), wait=True) as events:
        with pytest.raises(DevletError, match="a watch event is malformed"):
            await anext(events)


async def test_an_event_without_end_is_an_error(serve_raw: Any) -> None:
    async with watching(serve_raw, *[chunk(b"x" * 300)] * 4, wait=True) as events:
        with pytest.raises(TooLarge, match="more than 1000 bytes"):
            await anext(events)


async def test_bookmarks_are_sent_on_request_only(serve_raw: Any) -> None:
    said = chunk(frame("BOOKMARK", "7") + frame("ADDED", "8")), b"0\r\n\r\n"
    async with watching(serve_raw, *said) as events:
        assert await versions(events) == ["8"]
    async with watching(serve_raw, *said, bookmarks=True) as events:
        assert await versions(events) == ["7", "8"]


async def test_a_refused_watch_is_refused_at_once(serve: Any) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        assert request.query["resourceVersion"] == "3"
        return web.json_response(failure(410, "Gone", "gone"), status=410)

    async with connected(Connection(await serve(handler))) as remote:
        with pytest.raises(Expired, match="gone"):
            async with remote.watch(CONFIG_MAPS, "", WatchOptions(resource_version="3")):
                raise AssertionError("the watch began")


async def test_leaving_a_watch_hangs_up(serve_raw: Any) -> None:
    gone = anyio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + chunk(frame("ADDED", "1")))
        await writer.drain()
        await reader.read()
        gone.set()

    async with connected(Connection(await serve_raw(script))) as remote:
        async with remote.watch(CONFIG_MAPS) as events:
            await anext(events)
        with deadline():
            await gone.wait()


class Moody:
    """An API server with one config map whose watches end in a new way each time, but whose history goes on."""

    def __init__(self) -> None:
        self.version = 1
        self.lists = 0
        self.watched: list[str] = []
        self.seen = anyio.Event()  # the event before the abort has arrived
        self.moods = ["clean", "abort", "silence", "expired", "throttled", "gone", "calm"]

    def document(self) -> dict[str, Any]:
        return {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "resourceVersion": str(self.version)}}

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if "watch" not in request.query:
            self.lists += 1
            return web.json_response({"metadata": {"resourceVersion": str(self.version)}, "items": [self.document()]})
        self.watched.append(request.query["resourceVersion"])
        mood = self.moods.pop(0)
        if mood == "throttled":
            return web.Response(status=429, headers={"Retry-After": "0"})
        if mood == "gone":
            return web.json_response(failure(410, "Expired", "too old"), status=410)
        return await self._stream(request, mood)

    async def _stream(self, request: web.BaseRequest, mood: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if mood == "expired":
            await response.write(
                msgspec.json.encode({"type": "ERROR", "object": failure(410, "Expired", "too old")}) + b"\n"
            )
            return response
        self.version += 1
        await response.write(msgspec.json.encode({"type": "MODIFIED", "object": self.document()}) + b"\n")
        if mood == "abort":
            await response.write(b'{"type": "MODI')
            await self.seen.wait()  # else the reset overtakes the event
            assert request.transport is not None
            request.transport.abort()
        if mood in ("silence", "calm"):
            await anyio.sleep_forever()
        return response


async def test_an_informer_outlives_everything_a_server_can_do(serve: Any) -> None:
    server = Moody()
    async with connected(Connection(await serve(server)), Settings(silence=0.2)) as remote:
        informer = Informer(
            remote, CONFIG_MAPS, lambda d: int(d["metadata"]["resourceVersion"]), backoff=Backoff(0.01, 0.01)
        )
        with deadline():
            async with running(informer.run), informer.changes() as changes:
                async for change in changes:
                    if change.new == 3:
                        server.seen.set()
                    if server.moods == [] and change.new == server.version:
                        break
    assert informer.get("a", "ns") == server.version == 5
    assert server.lists == 3, "at first and after each 410"
    assert server.watched == ["1", "2", "3", "4", "4", "4", "4"]


async def test_a_server_that_goes_away_is_unavailable(serve_raw: Any) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...

    async with connected(Connection(await serve_raw(script))) as remote:
        with pytest.raises(Unavailable):
            await remote.get(PODS, "p", "ns")
        with pytest.raises(Unavailable):
            async with remote.watch(PODS):
                raise AssertionError("the watch began")


async def test_an_absent_object_is_not_found(serve: Any) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        status = failure(404, "NotFound", 'pods "p" not found', {"name": "p", "kind": "pods"})
        return web.json_response(status, status=404)

    async with connected(Connection(await serve(handler))) as remote:
        with pytest.raises(NotFound) as refused:
            await remote.get(PODS, "p", "ns")
    assert (refused.value.resource, refused.value.name) == ("pods", "p")
