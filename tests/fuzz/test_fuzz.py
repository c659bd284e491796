"""A real daemon under random requests: no request may cause a 500, a traceback, a hang or a root that does not start.

    make fuzz                                          # one minute, two daemons
    DEVLET_FUZZ_SECONDS=3600 DEVLET_FUZZ_SEED=7 make fuzz

A failure prints the seed and each offending request."""

import http.client
import os
import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from tests.flows.test_api_bad_input import Api, running
from tests.fuzz.requests import KINDS, Request, request

SECONDS = float(os.environ.get("DEVLET_FUZZ_SECONDS", "60"))
SEED = int(os.environ.get("DEVLET_FUZZ_SEED") or time.time())
HANG = 60.0  # seconds without an answer
RESTART_EVERY = 5000  # requests
MOST = 25  # failures that are shown

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(SECONDS + 600)]


class Local(http.client.HTTPConnection):
    """A connection to the daemon's own socket, which needs neither TLS nor a token."""

    def __init__(self, root: Path) -> None:
        super().__init__("localhost", timeout=HANG)
        self._path = str(root / "devlet.sock")

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(HANG)
        self.sock.connect(self._path)


def answer(connection: Local, wanted: Request) -> tuple[int, bytes]:
    headers = {"Content-Type": wanted.content_type, "Accept": wanted.accept}
    connection.request(wanted.method, wanted.path, wanted.body, headers)
    response = connection.getresponse()
    return response.status, response.read()


class Findings:
    """What went wrong, once per place of the code that failed."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.codes: dict[int, int] = {}

    def add(self, number: int, wanted: Request, problem: str, place: str) -> None:
        if len(self.texts) < MOST:
            self.texts.setdefault(
                place or f"{wanted.method} {problem[:80]}", f"request {number}: {problem}\n  {wanted}\n  {place}"
            )


def new_traceback(log: Path, read: int) -> tuple[str, int]:
    """The last lines of a traceback that was written since, and how far the log was read."""
    with log.open("rb") as file:
        file.seek(read)
        text = file.read()
    lines = [line for line in text.decode(errors="replace").splitlines() if line.strip()]
    starts = [i for i, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    return ("\n  ".join(lines[starts[0] : starts[0] + 60][-12:]) if starts else ""), read + len(text)


def run(api: Api, root: Path, random: Random, first: int, until: float, found: Findings) -> int:
    number, read = first, 0
    connection = Local(root)
    with closing(connection):
        while time.monotonic() < until and number < first + RESTART_EVERY and len(found.texts) < MOST:
            wanted = request(random)
            number += 1
            try:
                code, body = answer(connection, wanted)
            except (OSError, http.client.HTTPException) as e:
                connection.close()
                found.add(number, wanted, f"no answer: {e!r}", "" if os.path.exists(f"/proc/{api.pid}") else "it died")
                if not (root / "devlet.sock").exists():
                    break
                continue
            found.codes[code] = found.codes.get(code, 0) + 1
            place, read = new_traceback(api.log, read)
            if place or (code >= 500 and code != 503):
                found.add(number, wanted, f"answered {code} {body[:300]!r}", place)
    return number


def check_lists(api: Api, found: Findings) -> None:
    """After a restart everything that is stored can be read."""
    for kind in KINDS:
        group = "apis" if "/" in kind.api_versions[0] else "api"
        wanted = Request("GET", f"/{group}/{kind.api_versions[0]}/{kind.plural}")
        if (code := api.call("GET", wanted.path).code) not in (200, 404):
            found.add(0, wanted, f"answered {code} after a restart", "")
    if (code := api.call("GET", "/readyz").code) != 200:
        found.add(0, Request("GET", "/readyz"), f"answered {code} after a restart", "")


@pytest.mark.parametrize("daemon", [0, 1])  # one for each of two cores
def test_no_request_breaks_the_daemon_or_its_root(daemon: int, record_property: Callable[[str, object], None]) -> None:
    random, found, number = Random(SEED + daemon), Findings(), 0
    record_property("seed", SEED)
    until = time.monotonic() + SECONDS
    with TemporaryDirectory(prefix="dv") as name:
        root = Path(name)
        while time.monotonic() < until and len(found.texts) < MOST:
            with running(root) as api:
                if number:
                    check_lists(api, found)
                number = run(api, root, random, number, until, found)
            place, _ = new_traceback(root / "up.log", 0)
            if place and not found.texts:
                found.add(number, Request("", "during the stop"), "traceback", place)
        with running(root) as api:
            check_lists(api, found)
    record_property("requests", number)
    record_property("answers by code", dict(sorted(found.codes.items())))
    assert number > 0
    assert not found.texts, f"seed {SEED}: {len(found.texts)} findings\n\n" + "\n\n".join(found.texts.values())
