"""Lists that are sent in pieces."""

import contextlib
import json
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import pytest
from aiohttp import web

from devlet.objects.kinds import CONFIG_MAPS
from devlet.serve.kube_api import answers, long_answers

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio

MAPS = "/api/v1/namespaces/default/configmaps"


async def fill(served: "Served", numbers: range, size: int) -> None:
    for i in numbers:
        document = {"metadata": {"name": f"map-{i:03}"}, "data": {"text": "x" * size}}
        await served.store.create(CONFIG_MAPS, document, "default")


async def test_a_short_list_has_a_length_and_a_long_one_comes_in_chunks(served: "Served") -> None:
    await fill(served, range(1), 10)
    code, short = await served.request("GET", MAPS)
    assert (code, len(short["items"])) == (200, 1)
    assert int(served.headers["Content-Length"]) < 1000
    await fill(served, range(1, 6), answers.PIECE // 2)
    code, long = await served.request("GET", MAPS)
    assert (code, served.headers.get("Transfer-Encoding")) == (200, "chunked")
    assert [item["metadata"]["name"] for item in long["items"]] == [f"map-{i:03}" for i in range(6)]
    assert long["metadata"] == {"resourceVersion": str(served.store.version)}


async def test_the_pieces_of_a_list_are_the_list(served: "Served") -> None:
    await fill(served, range(6), answers.PIECE // 2)
    plain = {"Accept": "application/json"}
    _, long = await served.request("GET", MAPS, headers=plain)
    _, pretty = await served.request("GET", f"{MAPS}?pretty=true", headers=plain)
    assert long == pretty


async def test_a_long_list_carries_its_warnings(served: "Served") -> None:
    device = {"name": "d", "attributes": {"a": {"string": "x" * 60}}}
    for i in range(40):
        spec = {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": f"p{i}", "generation": 1, "resourceSliceCount": 1},
            "devices": [{**device, "name": f"d{n}"} for n in range(128)],
        }
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"s{i}"}}
        path, headers = "/apis/resource.k8s.io/v1/resourceslices", {"Content-Type": "application/json"}
        code, _ = await served.request("POST", path, data=json.dumps({**body, "spec": spec}), headers=headers)
        assert code == 201
    code, listed = await served.request("GET", "/apis/resource.k8s.io/v1beta1/resourceslices")
    assert (code, len(listed["items"]), served.headers.get("Transfer-Encoding")) == (200, 40, "chunked")
    assert "deprecated" in served.headers["Warning"]
    assert listed["items"][0]["spec"]["devices"][0]["basic"]


async def test_a_client_that_stops_reading_is_cut_off(served: "Served", monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(served, range(12), 900_000)
    given_up = threading.Event()
    cut_off = long_answers.cut_off

    def noticed(request: web.BaseRequest) -> None:
        cut_off(request)
        given_up.set()

    monkeypatch.setattr(long_answers, "cut_off", noticed)
    monkeypatch.setattr(long_answers, "WRITE_TIMEOUT", 0.2)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        got = await anyio.to_thread.run_sync(_read_when, given_up, connection, served)
    assert 0 < got < 12 * 900_000


def _read_when(given_up: threading.Event, connection: socket.socket, served: "Served") -> int:
    """Return how many bytes of a list arrive if the client reads nothing until the server cuts it off."""
    place = urlsplit(served.url)
    request = f"GET {MAPS} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {served.token}\r\n\r\n"
    connection.settimeout(60)
    connection.connect((place.hostname, place.port))
    with served.tls.wrap_socket(connection, server_hostname=place.hostname) as reader:
        reader.sendall(request.encode())
        got = len(reader.recv(1))
        assert given_up.wait(60)
        with contextlib.suppress(OSError):
            while chunk := reader.recv(1 << 16):
                got += len(chunk)
    return got
