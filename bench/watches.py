"""Watches that no client reads: how much memory each costs devlet. `python bench/watches.py [--quick]`.

Clients watch a cluster of many small objects and one of few large ones, but never read the responses. Then the objects
are replaced. Some clients have a small receive buffer, others the system's default. All of them belong to one user,
whose limit on watches is raised; every other limit is the default.
"""

import argparse
import asyncio
import json
import resource
import shutil
import socket
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench._report import ROOT, machine, resident_mebibytes

from devlet.kit.processes import spawn
from devlet.testing.embedded import EmbeddedApi, embedded_api

MAPS = "/api/v1/namespaces/default/configmaps"
SMALL_BUFFER = 4096
AT_ONCE = 16  # requests
_CONFIGURATION = """apiVersion: devlet.dev/v1alpha1
kind: Configuration
limits:
  watchesPerUser: {watches}
"""


@dataclass(frozen=True)
class Load:
    name: str
    objects: int
    size: int  # bytes of each
    writes: int  # after the watches are open


@dataclass(frozen=True)
class Figures:
    """Resident memory in MiB."""

    before: float
    opened: float
    churned: float
    alive: int  # watches that are still open after the writes
    kernel: float  # MiB of the system's TCP buffers, both ends


def loads(quick: bool) -> list[Load]:
    part = 10 if quick else 1
    return [Load("small objects", 2_000 // part, 1_000, 4_000 // part), Load("large objects", 20, 400_000, 300 // part)]


class Client:
    def __init__(self, api: EmbeddedApi, session: aiohttp.ClientSession) -> None:
        self._api = api
        self._session = session
        self._trust = ssl.create_default_context(cafile=api.ca_file)
        self._place = urlsplit(api.endpoint)

    async def write(self, count: int, objects: int, size: int) -> None:
        """PUT `count` times, over all objects in turn. A new watch sees each of these writes."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with gate:
                name = f"map-{number % objects:05}"
                text = f"{number:08}" + "x" * size
                document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": text}}
                headers = {"Authorization": f"Bearer {self._api.token}", "Content-Type": "application/json"}
                body = json.dumps(document).encode()
                url = self._api.endpoint + MAPS
                async with self._session.post(url, data=body, headers=headers, ssl=self._trust) as answer:
                    if answer.status == 201:
                        return
                async with self._session.put(f"{url}/{name}", data=body, headers=headers, ssl=self._trust) as answer:
                    if answer.status != 200:
                        raise SystemExit(f"{answer.status}: {await answer.text()}")

        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(one, number)

    def watch(self, buffer: int) -> ssl.SSLSocket:
        raw = socket.socket()
        if buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        raw.settimeout(60)
        raw.connect((self._place.hostname, self._place.port))
        encrypted = self._trust.wrap_socket(raw, server_hostname=self._place.hostname)
        request = f"GET {MAPS}?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._api.token}\r\n\r\n"
        encrypted.sendall(request.encode())
        return encrypted


async def measure(load: Load, watches: int, buffer: int, directory: Path) -> Figures:
    with _fresh(directory) as root, tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(_CONFIGURATION.format(watches=watches))
        config.flush()
        arguments = ["--config", config.name]
        async with embedded_api(root, arguments=arguments, start=spawn) as api, aiohttp.ClientSession() as session:
            client = Client(api, session)
            await client.write(load.objects, load.objects, load.size)
            before, tcp = resident_mebibytes(api.pid), _tcp_mebibytes()
            opened: list[ssl.SSLSocket] = []
            try:
                opened += [await anyio.to_thread.run_sync(client.watch, buffer) for _ in range(watches)]
                await _settled(api.pid)
                after = resident_mebibytes(api.pid)
                await client.write(load.writes, load.objects, load.size)
                await _settled(api.pid)
                churned, kernel = resident_mebibytes(api.pid), _tcp_mebibytes() - tcp
                alive = sum(not _is_closed(one) for one in opened)
            finally:
                for one in opened:
                    one.close()
            return Figures(before, after, churned, alive, kernel)


async def _settled(pid: int) -> None:
    """Wait until the process has finished its work."""
    last = -1
    while (now := _ticks(pid)) > last + 5:
        last = now
        await anyio.sleep(1)


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


def _is_closed(connection: ssl.SSLSocket) -> bool:
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as raw:
        state = raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state != 1  # established


def _tcp_mebibytes() -> float:
    line = next(line for line in Path("/proc/net/sockstat").read_text().splitlines() if line.startswith("TCP:"))
    return int(line.split()[-1]) * 4 / 1024


@contextmanager
def _fresh(directory: Path) -> Iterator[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    place, state = Path(tempfile.mkdtemp(prefix="dv")), Path(tempfile.mkdtemp(prefix="watches", dir=directory))
    (place / "r").symlink_to(state, target_is_directory=True)
    try:
        yield place / "r"
    finally:
        shutil.rmtree(place)
        shutil.rmtree(state)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 watches and fewer objects")
    parser.add_argument("--watches", type=int, help="how many, by default 1,500")
    parser.add_argument("--only", default="", metavar="TEXT", help="loads whose name has this in it")
    parser.add_argument("--buffer", choices=("small", "default"), help="only clients with this receive buffer")
    parser.add_argument("--directory", type=Path, default=ROOT / ".cache" / "bench", help="where the state goes")
    options = parser.parse_args()
    options.watches = options.watches or (100 if options.quick else 1_500)
    return options


async def run(options: argparse.Namespace) -> None:
    about = machine(Path(tempfile.gettempdir()))
    print(f"{about.cores} cores, {about.system}, Python {about.python}, load {about.load}; {options.watches} watches")
    print(f"{'load':16}{'buffer':>9}{'before':>9}{'opened':>9}{'written':>9}{'KiB each':>10}{'alive':>7}{'kernel':>8}")
    for load in loads(options.quick):
        for name, buffer in (("small", SMALL_BUFFER), ("default", 0)):
            if options.only not in load.name or options.buffer not in (None, name):
                continue
            f = await measure(load, options.watches, buffer, options.directory)
            each = (max(f.opened, f.churned) - f.before) * 1024 / options.watches
            print(
                f"{load.name:16}{name:>9}{f.before:9.0f}{f.opened:9.0f}{f.churned:9.0f}{each:10.0f}"
                f"{f.alive:7}{f.kernel:8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with suppress(KeyboardInterrupt):
        anyio.run(run, _options())
