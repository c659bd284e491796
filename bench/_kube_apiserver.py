"""kube-apiserver over etcd, loaded over HTTPS with JSON from this process: the closest counterpart of the embedded
store.

The client does as little as possible in Python: bodies are prepared, each writer keeps one connection, and responses
are not decoded. Its share is negligible beside the server's milliseconds per request.
"""

import http.client
import ssl
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from bench._objects import bodies, collection_path
from bench._report import PEERS, resident_mebibytes

from devlet.objects.kinds import Resource
from tests.support.peers.control_plane import ControlPlane, control_plane

REQUEST_TIMEOUT = 120.0
LISTS_PER_FILL = 3


def is_built() -> bool:
    return all((PEERS / name).is_file() for name in ("etcd", "kube-apiserver", "kubectl"))


async def measure(op: str, object_: str, count: int, writers: int, directory: Path) -> dict[str, float]:
    """Return creates per second or seconds per list on an empty cluster, and the server's memory afterwards."""
    async with control_plane(PEERS, directory) as plane:
        figures = await anyio.to_thread.run_sync(_create, plane, object_, count, writers)
        if op == "list":
            figures = await anyio.to_thread.run_sync(_list, plane, object_, count)
        return figures | {"rss_mib": resident_mebibytes(plane.pids["kube-apiserver"])}


def _create(plane: ControlPlane, object_: str, count: int, writers: int) -> dict[str, float]:
    resource, sent = bodies(object_, 0, count)
    left = iter(sent)
    with ThreadPoolExecutor(writers) as threads:
        start = time.perf_counter()
        done = [threads.submit(_write, plane, resource, left) for _ in range(writers)]
        for one in done:
            one.result()
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "per_second": count / seconds}


def _write(plane: ControlPlane, resource: Resource, left: Iterator[bytes]) -> None:
    with closing(_connection(plane)) as connection:
        for body in left:
            _answer(plane, connection, "POST", collection_path(resource), 201, body)


def _list(plane: ControlPlane, object_: str, count: int) -> dict[str, float]:
    resource, _ = bodies(object_, 0, 0)
    with closing(_connection(plane)) as connection:
        took = [
            _timed(lambda: _answer(plane, connection, "GET", collection_path(resource), 200))
            for _ in range(LISTS_PER_FILL)
        ]
    seconds = statistics.median(took)
    return {"seconds": seconds, "per_second": count / seconds}


def _timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def _answer(
    plane: ControlPlane, connection: http.client.HTTPConnection, verb: str, path: str, expected: int, body: bytes = b""
) -> bytes:
    headers = {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"}
    connection.request(verb, path, body or None, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != expected:
        raise RuntimeError(f"{verb} {path}: {answer.status}, expected {expected}: {text[:500]!r}")
    return text


def _connection(plane: ControlPlane) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=plane.ca_file)
    # the server's own certificate lacks fields that Python 3.13 requires
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return http.client.HTTPSConnection(urlsplit(plane.endpoint).netloc, timeout=REQUEST_TIMEOUT, context=context)
