import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from devlet.cluster.remote.connection import Connection, Credentials, KeyPair, at_socket
from devlet.cluster.remote.http import Answer, Request, open_transport
from devlet.cluster.remote.settings import Settings
from devlet.errors import BadRequest, Conflict, DevletError, Forbidden, InvalidInput, TooLarge, Unavailable
from devlet.objects.statuses import failure
from devlet.testing.fake_clock import FakeClock
from tests.support.free_ports import free_ports

pytestmark = pytest.mark.anyio

GET = Request("GET", "/x")


async def ok(request: web.BaseRequest) -> web.Response:
    return web.json_response({"path": request.path_qs, "headers": dict(request.headers)})


async def call(connection: Connection, request: Request = GET, **settings: Any) -> Answer:
    async with open_transport(connection, Settings(**settings)) as transport:
        return await transport.call(request)


async def test_a_request_arrives_as_it_was_meant(serve: Any) -> None:
    seen = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, request.path_qs, request.headers, await request.read()))
        return web.Response(status=201, body=b"{}", headers={"Warning": '299 - "w"'})

    request = Request("PATCH", "/a/b%20c", [("x", "1,2&ä"), ("y", "z")], b"[]", "application/json-patch+json")
    answer = await call(Connection(f"{await serve(handler)}/prefix/"), request)
    assert answer == Answer(201, b"{}", ('299 - "w"',))
    method, path, headers, body = seen[0]
    assert (method, path, body) == ("PATCH", "/prefix/a/b%20c?x=1,2%26%C3%A4&y=z", b"[]")
    assert (headers["Content-Type"], headers["Accept"]) == ("application/json-patch+json", "application/json")
    assert headers["User-Agent"] == "devlet"


async def test_a_socket_speaks_the_same(serve: Any, root: Path) -> None:
    await serve(ok, socket=root / "s")
    assert b'"/x"' in (await call(at_socket(root / "s"))).body


async def test_a_failure_is_the_error_it_reports(serve: Any) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.json_response(failure(409, "Conflict", "somebody was faster"), status=409)

    with pytest.raises(Conflict, match="somebody was faster"):
        await call(Connection(await serve(handler)))


async def test_a_redirect_is_not_an_answer(serve: Any) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(status=302, headers={"Location": "/login"})

    with pytest.raises(DevletError, match="is this an API server"):
        await call(Connection(await serve(handler)))


@pytest.mark.parametrize("code", [429, 503])
async def test_a_request_is_repeated_when_the_server_says_when(serve: Any, code: int) -> None:
    bodies = []

    async def handler(request: web.BaseRequest) -> web.Response:
        bodies.append(await request.read())
        if len(bodies) < 3:
            return web.Response(status=code, headers={"Retry-After": "7"})
        return web.Response(body=b"{}")

    clock = FakeClock()
    async with open_transport(Connection(await serve(handler)), Settings(), clock) as transport:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.call, Request("POST", "/x", body=b"body"))
            for _ in range(2):
                await clock.sleeping(1)
                await clock.advance(7)
    assert bodies == [b"body"] * 3


async def test_patience_ends(serve: Any) -> None:
    calls = 0

    async def handler(request: web.BaseRequest) -> web.Response:
        nonlocal calls
        calls += 1
        return web.Response(status=429, headers={"Retry-After": "0"}, text="slow down")

    with pytest.raises(Unavailable, match="slow down"):
        await call(Connection(await serve(handler)), retries=2)
    assert calls == 3


@pytest.mark.parametrize(
    ("code", "headers"),
    [(429, {}), (503, {"Retry-After": "100"}), (429, {"Retry-After": "soon"}), (504, {"Retry-After": "1"})],
)
async def test_the_caller_hears_of_what_is_not_repeated(serve: Any, code: int, headers: dict[str, str]) -> None:
    calls = 0

    async def handler(request: web.BaseRequest) -> web.Response:
        nonlocal calls
        calls += 1
        return web.Response(status=code, headers=headers)

    with pytest.raises(Unavailable) as refused:
        await call(Connection(await serve(handler)))
    assert calls == 1
    assert refused.value.retry_after == (100 if headers.get("Retry-After") == "100" else 1)


async def test_requests_keep_to_their_rate(serve: Any) -> None:
    clock = FakeClock()
    async with open_transport(Connection(await serve(ok)), Settings(qps=1, burst=1), clock) as transport:
        await transport.call(GET)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.call, GET)
            await clock.sleeping(1)
            await clock.advance(1)
    assert clock.monotonic() == 1


async def test_a_server_that_is_not_there_is_named() -> None:
    (port,) = free_ports(1)
    with pytest.raises(Unavailable, match=f"^http://127.0.0.1:{port}: Connection refused$"):
        await call(Connection(f"http://127.0.0.1:{port}"))


async def test_a_socket_that_is_not_there_is_named(root: Path) -> None:
    with pytest.raises(Unavailable, match=f"^{root}/s: No such file or directory$"):
        await call(at_socket(root / "s"))


async def test_a_host_without_an_address_is_named() -> None:
    with pytest.raises(Unavailable, match=r"^https://devlet\.invalid: "):
        await call(Connection("https://devlet.invalid"))


async def test_a_silent_server_is_left(serve_raw: Any) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with pytest.raises(Unavailable, match="no answer in time"):
        await call(Connection(await serve_raw(script)), answer_timeout=0.05)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"", "closed before an answer|reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "broke off|reset"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", "broke off|reset"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", ""),
    ],
)
async def test_half_an_answer_is_none(serve_raw: Any, said: bytes, expected: str) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()

    url = await serve_raw(script)
    with pytest.raises(Unavailable, match=f"{url}: .*({expected})"):
        await call(Connection(url))


async def test_an_answer_has_a_limit(serve: Any) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * 1001)

    url = await serve(handler)
    assert len((await call(Connection(url), max_answer_bytes=1001)).body) == 1001
    with pytest.raises(TooLarge, match="more than 1000 bytes"):
        await call(Connection(url), max_answer_bytes=1000)


async def test_text_that_is_none_is_refused(serve: Any) -> None:
    with pytest.raises(BadRequest, match="not Unicode"):
        await call(Connection("http://127.0.0.1:1"), Request("GET", "/x", [("a", "\ud800")]))


async def test_a_server_shows_a_certificate_of_our_authority(serve: Any, authority: Any, tmp_path: Path) -> None:
    url = await serve(ok, tls=authority.server(tmp_path, "127.0.0.1"))
    assert (await call(Connection(url, ca=authority.pem))).code == 200
    assert (await call(Connection(url, verify=False))).code == 200
    with pytest.raises(Unavailable, match=f"{url}: its certificate is not trusted"):
        await call(Connection(url))


async def test_the_certificate_may_be_for_another_name(serve: Any, authority: Any, tmp_path: Path) -> None:
    url = await serve(ok, tls=authority.server(tmp_path, "api.example.com"))
    assert (await call(Connection(url, ca=authority.pem, tls_server_name="api.example.com"))).code == 200
    with pytest.raises(Unavailable, match="not trusted: IP address mismatch"):
        await call(Connection(url, ca=authority.pem))


async def test_a_client_shows_its_certificate_and_its_token(serve: Any, authority: Any, tmp_path: Path) -> None:
    seen: list[Any] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert")
        seen.append((certificate["subject"], request.headers.get("Authorization")))
        return web.Response(body=b"{}")

    url = await serve(handler, tls=authority.server(tmp_path, "127.0.0.1"))
    credentials = Credentials(KeyPair(*authority.issue("jane")), "t")
    await call(Connection(url, ca=authority.pem, credentials=credentials))
    assert seen == [(((("commonName", "jane"),),), "Bearer t")]


async def test_a_plain_server_never_sees_the_token(serve: Any) -> None:
    answer = await call(Connection(await serve(ok), credentials=Credentials(token="secret")))
    assert b"secret" not in answer.body


async def test_a_refused_token_is_read_again_once(serve: Any, authority: Any, tmp_path: Path) -> None:
    path, seen = tmp_path / "token", []
    path.write_text("old")

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request.headers["Authorization"])
        path.write_text("new")
        return web.Response(status=200 if seen[-1] == "Bearer new" else 401, body=b"{}")

    url = await serve(handler, tls=authority.server(tmp_path, "127.0.0.1"))
    connection = Connection(url, ca=authority.pem, credentials=Credentials(token_file=path))
    assert (await call(connection)).code == 200
    assert seen == ["Bearer old", "Bearer new"]


async def test_a_token_that_stays_refused_is_forbidden(serve: Any, authority: Any, tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.json_response(failure(401, "Unauthorized", "Unauthorized"), status=401)

    url = await serve(handler, tls=authority.server(tmp_path, "127.0.0.1"))
    with pytest.raises(Forbidden, match="Unauthorized"):
        await call(Connection(url, ca=authority.pem, credentials=Credentials(token="t")))


async def test_invalid_credentials_are_not_reported_as_an_error_of_the_server(tmp_path: Path) -> None:
    connection = Connection("https://127.0.0.1:1", credentials=Credentials(token_file=tmp_path / "absent"))
    with pytest.raises(InvalidInput, match="absent: No such file"):
        await call(connection)


async def test_a_stream_comes_as_it_is_sent(serve: Any) -> None:
    go = anyio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one")
        await go.wait()
        await response.write(b"two")
        return response

    async with open_transport(Connection(await serve(handler))) as transport, transport.stream(GET) as chunks:
        assert await anext(chunks) == b"one"
        go.set()
        assert [chunk async for chunk in chunks] == [b"two"]
