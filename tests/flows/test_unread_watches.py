"""What clients that do not read their watches can do to a daemon, and to clients that read theirs: little."""

import http.client
import json
import re
import socket
import ssl
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from anyio import to_thread

from devlet.auth import kubeconfigs
from devlet.kit.processes import RunningProcess, process
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import DEADLINE, deadline, until

pytestmark = pytest.mark.anyio

MAPS = "/api/v1/namespaces/default/configmaps"
MIB = 1 << 20
LARGE = 1_000_000  # bytes, almost the most that a ConfigMap can have
BUDGET = 8 * MIB
MOST = 20  # watches of a user
LIMITS = f"""apiVersion: devlet.dev/v1alpha1
kind: Configuration
limits:
  watchesPerUser: {MOST}
  unreadBytesPerUser: {BUDGET}
  unreadBytes: {BUDGET}
  recentChangesBytes: {BUDGET}
"""


class Watch:
    """Over a connection of its own with a small buffer."""

    def __init__(self, client: "Client", user: str, query: str = "") -> None:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(DEADLINE)
        raw.connect(("127.0.0.1", client.port))
        self._connection = client.connection()
        self._connection.sock = client.trust.wrap_socket(raw, server_hostname="127.0.0.1")
        self._connection.request("GET", f"{MAPS}?watch=true&{query}", headers=client.headers(user))
        self.answer = self._connection.getresponse()
        self.version = ""

    def next(self) -> Any:
        """The object of the next event. EOFError if the connection ended before all of it came."""
        try:
            line = self.answer.readline()
        except (OSError, http.client.HTTPException) as e:
            raise EOFError from e
        if not line.endswith(b"\n"):
            raise EOFError
        found = json.loads(line)["object"]
        self.version = found["metadata"]["resourceVersion"]
        return found

    def reset(self) -> None:
        """Disconnect without a word, as a process that is killed."""
        self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


class Client:
    def __init__(self, api: EmbeddedApi) -> None:
        self.trust = ssl.create_default_context(cafile=api.ca_file)
        self.port = int(api.endpoint.rpartition(":")[2])
        self._token = api.token

    def connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trust, timeout=DEADLINE)

    def headers(self, user: str) -> dict[str, str]:
        """Of a user who may do everything."""
        impersonated = {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
        return {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", **impersonated}

    def call(self, method: str, path: str, body: object = None, *, user: str = "writer") -> tuple[int, bytes]:
        with closing(self.connection()) as connection:
            blob = None if body is None else json.dumps(body).encode()
            connection.request(method, path, blob, self.headers(user))
            answer = connection.getresponse()
            return answer.status, answer.read()

    def put(self, name: str, number: int, size: int) -> str:
        """Create or replace a ConfigMap; the version it has now."""
        document = {"metadata": {"name": name}, "data": {"k": f"{number:04}" + "x" * size}}
        code, body = self.call("POST", MAPS, document)
        if code == 409:
            code, body = self.call("PUT", f"{MAPS}/{name}", document)
        assert code in (200, 201), body
        return str(json.loads(body)["metadata"]["resourceVersion"])

    async def metric(self, name: str) -> float:
        _, text = await to_thread.run_sync(self.call, "GET", "/metrics")
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text.decode(), re.MULTILINE))


@pytest.fixture
async def client(root: Path, tmp_path: Path) -> AsyncIterator[Client]:
    config = tmp_path / "config.yaml"
    config.write_text(LIMITS)
    async with embedded_api(root, arguments=["--config", str(config)]) as api:
        yield Client(api)


@pytest.mark.long
async def test_unread_watches_stay_within_their_budget_while_a_reader_gets_every_event(client: Client) -> None:
    """Each unread watch is stuck in another version of a large object, so none of it is shared."""
    written: list[str] = []
    seen: list[str] = []

    def read(watch: Watch) -> None:
        while len(seen) < 3 * MOST:
            watch.next()
            seen.append(watch.version)

    with ExitStack() as stack:
        start = client.put("small", 0, 10)
        reader = stack.enter_context(closing(Watch(client, "reader", f"resourceVersion={start}")))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, read, reader)
            for number in range(3 * MOST):
                written.append(await to_thread.run_sync(client.put, "large", number, LARGE))
                if number < MOST:
                    stack.enter_context(closing(await to_thread.run_sync(Watch, client, "idle")))
                assert await client.metric("devlet_api_unread_bytes") <= BUDGET
                assert await client.metric("devlet_store_unread_change_bytes") <= BUDGET
            await until(partial(client.metric, "devlet_api_clients_cut_off_total"))
        assert seen == written
    await until(partial(client.metric, "devlet_api_unread_bytes"), lambda held: held == 0)
    await until(partial(client.metric, "devlet_api_watches"), lambda watches: watches == 0)
    await to_thread.run_sync(client.put, "small", 1, 10)


async def test_a_watch_that_was_cut_off_resumes_and_misses_nothing(client: Client) -> None:
    start = client.put("small", 0, 10)
    with ExitStack() as stack:
        watch = stack.enter_context(closing(Watch(client, "idle", f"resourceVersion={start}")))
        seen = []
        written = [await to_thread.run_sync(client.put, "large", number, LARGE) for number in range(5)]
        seen.append((await to_thread.run_sync(watch.next))["metadata"]["resourceVersion"])
        before = await client.metric("devlet_api_clients_cut_off_total")
        while await client.metric("devlet_api_clients_cut_off_total") == before:
            written.append(await to_thread.run_sync(client.put, "large", len(written), LARGE))
            if await client.metric("devlet_api_watches") < MOST:  # more that do not read, after the one that did
                stack.enter_context(closing(await to_thread.run_sync(Watch, client, "idle")))
        with deadline(), pytest.raises(EOFError):
            while True:
                seen.append((await to_thread.run_sync(watch.next))["metadata"]["resourceVersion"])
    with closing(Watch(client, "idle", f"resourceVersion={seen[-1]}")) as resumed:
        while len(seen) < len(written):
            seen.append((await to_thread.run_sync(resumed.next))["metadata"]["resourceVersion"])
    assert seen == written


async def test_a_watch_that_is_far_behind_reads_on_from_disk_and_misses_nothing(client: Client) -> None:
    start = client.put("small", 0, 10)
    with closing(Watch(client, "late", f"resourceVersion={start}")) as watch:
        written = [await to_thread.run_sync(client.put, "large", number, LARGE) for number in range(24)]
        assert await client.metric("devlet_store_unread_change_bytes") <= BUDGET
        seen = [(await to_thread.run_sync(watch.next))["metadata"]["resourceVersion"] for _ in written]
    assert seen == written


def _close(watch: Watch) -> None:
    watch.close()


@pytest.mark.parametrize("end", [_close, Watch.reset], ids=["closed", "reset"])
async def test_one_watch_more_than_the_limit_is_refused_until_another_one_ends(
    client: Client, end: Callable[[Watch], None]
) -> None:
    with ExitStack() as stack:
        watches = [Watch(client, "ann") for _ in range(MOST)]
        for watch in watches:
            stack.enter_context(closing(watch))
            assert watch.answer.status == 200
        with closing(Watch(client, "ann")) as refused:
            status = json.loads(refused.answer.read())
            assert (refused.answer.status, status["kind"], status["reason"]) == (429, "Status", "TooManyRequests")
            assert f"{MOST} watches open" in status["message"] and "limits.watchesPerUser" in status["message"]
            assert int(refused.answer.headers["Retry-After"]) == status["details"]["retryAfterSeconds"] >= 1
        with closing(Watch(client, "bob")) as other:
            assert other.answer.status == 200
        await until(partial(client.metric, "devlet_api_watches"), lambda watches: watches == MOST)
        end(watches[0])
        await until(partial(client.metric, "devlet_api_watches"), lambda watches: watches == MOST - 1)
        with closing(Watch(client, "ann")) as again:
            assert again.answer.status == 200


FILES = 256  # that the process may have open


async def test_idle_connections_leave_files_for_the_node(root: Path) -> None:
    limited = ["/bin/sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh"]
    command = [*limited, sys.executable, "-m", "devlet", "up", "--root", str(root), "--no-control"]

    async def is_ready(_: RunningProcess) -> bool:
        return b"devlet is ready" in await anyio.Path(root / "up.log").read_bytes()

    async with process(command, log=root / "up.log", name="devlet up", ready=is_ready):
        cluster = kubeconfigs.read(root / "kubeconfig")["clusters"][0]["cluster"]
        port = int(cluster["server"].rpartition(":")[2])
        with ExitStack() as stack:
            for _ in range(2 * FILES):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=DEADLINE))
            connector = aiohttp.UnixConnector(str(root / "devlet.sock"))
            async with aiohttp.ClientSession("http://devlet", connector=connector) as session:
                async with session.post(MAPS, json={"metadata": {"name": "new"}}) as answer:
                    assert answer.status == 201, await answer.text()
            log = await until(anyio.Path(root / "up.log").read_text, lambda log: "connections refused" in log)
        assert "Traceback" not in log
        trust = ssl.create_default_context(cafile=root / "pki" / "ca.crt")

        def answers() -> bool:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as raw:
                with trust.wrap_socket(raw, server_hostname="127.0.0.1") as connection:
                    return connection.version() is not None
            return False

        await until(partial(to_thread.run_sync, answers))
