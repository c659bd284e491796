import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from devlet.kit.processes import process
from tests.support.free_ports import free_ports
from tests.support.peers.health import answers

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        allowed = self.path == "/open" or self.headers["Authorization"] == "Bearer secret"
        self.send_response(200 if allowed else 401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


async def ask(tmp_path: Path, *urls: str, ca_file: Path | None = None, token: str = "") -> bool:
    async with process(["sleep", "60"], log=tmp_path / "log") as program:
        return await answers(*urls, ca_file=ca_file, token=token)(program)


async def test_a_server_that_answers_200_is_ready(server: str, tmp_path: Path) -> None:
    assert await ask(tmp_path, f"{server}/open")


async def test_the_token_is_sent(server: str, tmp_path: Path) -> None:
    assert await ask(tmp_path, f"{server}/closed", token="secret")


async def test_every_url_must_answer(server: str, tmp_path: Path) -> None:
    assert not await ask(tmp_path, f"{server}/open", f"{server}/closed")


async def test_a_port_where_nothing_listens_is_not_ready(tmp_path: Path) -> None:
    assert not await ask(tmp_path, f"http://127.0.0.1:{free_ports(1)[0]}/")


async def test_a_certificate_that_is_not_written_yet_is_not_ready(server: str, tmp_path: Path) -> None:
    https = server.replace("http:", "https:")
    assert not await ask(tmp_path, f"{https}/open", ca_file=tmp_path / "absent.crt")


async def test_a_server_that_does_not_speak_tls_is_not_ready(server: str, tmp_path: Path) -> None:
    assert not await ask(tmp_path, server.replace("http:", "https:"))
