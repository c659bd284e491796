"""The embedded store's counterpart of peers/bench-etcd: one operation on a fresh store. Prints one line of JSON.

`python -m bench._embedded --directory D --op create|list|watch` runs in a separate process, as etcd does, but the
callers are in that process: it measures the port without a socket. Each create starts from the JSON that a client would
send, so the figures include decoding, defaults, validation and managed fields.
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskStatus
from bench._objects import OBJECTS, bodies
from bench._report import resident_mebibytes

from devlet.cluster.client import ListOptions, WatchOptions
from devlet.cluster.store.store import Store, open_store
from devlet.objects.kinds import Resource

LISTS_PER_FILL = 5

Figures = dict[str, float]
_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def create(store: Store, options: argparse.Namespace) -> Figures:
    resource, sent = bodies(options.object, 0, options.count)
    cpu = time.process_time()
    took = await _fill(store, resource, sent, options.writers)
    return _rate(options.count, took) | {"cpu_ms_each": (time.process_time() - cpu) * 1000 / options.count}


async def list_(store: Store, options: argparse.Namespace) -> Figures:
    """List objects as the bytes for a client, and as documents for a caller in this process."""
    resource, sent = bodies(options.object, 0, options.count)
    await _fill(store, resource, sent, options.writers)
    as_bytes = [await _timed(_list_bytes, store, resource, options.count) for _ in range(LISTS_PER_FILL)]
    decoded = [await _timed(_list_decoded, store, resource, options.count) for _ in range(LISTS_PER_FILL)]
    return _rate(options.count, statistics.median(as_bytes)) | {"decoded_seconds": statistics.median(decoded)}


async def watch(store: Store, options: argparse.Namespace) -> Figures:
    """Measure from the first write to the last event at the last watcher."""
    resource, sent = bodies(options.object, 0, options.count)
    async with anyio.create_task_group() as tasks:
        for _ in range(options.watchers):
            await tasks.start(_receive, store, resource, options.count)
        start = time.perf_counter()
        await _fill(store, resource, sent, 1)
    return _rate(options.count * options.watchers, time.perf_counter() - start)


async def _fill(store: Store, resource: Resource, sent: Iterable[bytes], writers: int) -> float:
    """Write all objects; each writer waits until its object is on disk. Return how long it took."""
    left = iter(sent)
    start = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(writers):
            tasks.start_soon(_write, store, resource, left)
    return time.perf_counter() - start


async def _write(store: Store, resource: Resource, left: Iterator[bytes]) -> None:
    for body in left:
        document = _decode(body)
        await store.create(resource, document, document["metadata"].get("namespace", ""))


async def _receive(store: Store, resource: Resource, count: int, *, task_status: TaskStatus[None]) -> None:
    """Receive `count` events. Like a client, continue a stream that ended because this process was too slow."""
    seen, got = str(store.version), 0
    while True:
        async with store.watch(resource, options=WatchOptions(resource_version=seen)) as events:
            if not got:
                task_status.started()
            async for event in events:
                seen = event.object["metadata"]["resourceVersion"]
                got += 1
                if got == count:
                    return


async def _list_bytes(store: Store, resource: Resource, count: int) -> None:
    page = await store.page(resource, "", ListOptions())
    sent = b",".join(record.body for record in page.records)
    assert len(page.records) == count and sent


async def _list_decoded(store: Store, resource: Resource, count: int) -> None:
    page = await store.list(resource)
    assert sum(document["kind"] != "" for document in page.items) == count


async def _timed(run: Callable[[Store, Resource, int], Awaitable[None]], *arguments: Any) -> float:
    start = time.perf_counter()
    await run(*arguments)
    return time.perf_counter() - start


def _rate(done: int, seconds: float) -> Figures:
    return {"seconds": seconds, "per_second": done / seconds}


OPERATIONS = {"create": create, "list": list_, "watch": watch}


async def run(options: argparse.Namespace) -> Figures:
    options.directory.mkdir(parents=True, exist_ok=True)
    async with open_store(options.directory / "store.db") as store:
        if options.gc == "tuned":
            tune_gc()
        figures = await OPERATIONS[options.op](store, options)
        resource, _ = OBJECTS[options.object]
        page = await store.page(resource, "", ListOptions(limit=1))
        return figures | {"stored_bytes": len(page.records[0].body), "rss_mib": resident_mebibytes()}


def tune_gc() -> None:
    """Exclude everything loaded so far from garbage collection: a single slice is a thousand new objects without
    cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--op", choices=OPERATIONS, required=True)
    parser.add_argument("--object", choices=OBJECTS, default="slice")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--gc", choices=("default", "tuned"), default="default")
    return parser.parse_args()


def main() -> None:
    options = _options()
    figures = anyio.run(run, options, backend_options={"use_uvloop": True})
    print(json.dumps({"op": options.op, "writers": options.writers, "count": options.count, **figures}))


if __name__ == "__main__":
    main()
