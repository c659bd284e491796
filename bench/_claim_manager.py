"""devlet's counterpart of `kubelet-claims bench`: its claim manager in a separate process. Prints one line of JSON.

`python -m bench._claim_manager --directory D --driver N --driver-socket S --pods M --claims K --at-once C` starts from
the checkpoint in D, prepares pods with K claims each and then unprepares them. The claims are allocated and reserved in
an embedded store on disk, and are read from there one by one.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
from bench._embedded import tune_gc
from bench._objects import claim_document
from bench._report import written_bytes

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.claims.claim_reader import ClaimReader
from devlet.node.claims.manager import CHECKPOINT, ClaimManager
from devlet.objects.identifiers import DriverName, PodName, PodUID
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodResourceClaim, PodSpec
from devlet.plugins.dra_registry import DraRegistry

DRIVER_TIMEOUT = 60.0
WRITERS = 16
NAMESPACE = "default"

T = TypeVar("T")


def pods(count: int, claims: int) -> list[Pod]:
    return [_pod(number, claims) for number in range(count)]


def _pod(number: int, claims: int) -> Pod:
    names = [claim_document(number * claims + i)["metadata"]["name"] for i in range(claims)]
    uid = PodUID(f"new-{number}")
    return Pod(
        metadata=ObjectMeta(name=PodName(uid), namespace=NAMESPACE, uid=uid),
        spec=PodSpec(resource_claims=tuple(PodResourceClaim(name=name, resource_claim_name=name) for name in names)),
    )


async def allocate(store: Store, driver: str, pod: Pod) -> None:
    """Allocate a claim as the scheduler would, with the devices that the driver returns."""
    for claim in pod.spec.resource_claims:
        document = claim_document(0) | {"metadata": {"name": claim.name, "namespace": NAMESPACE}}
        uid = (await store.create(RESOURCE_CLAIMS, document, NAMESPACE))["metadata"]["uid"]
        device = {"request": "gpu", "driver": driver, "pool": "pool", "device": f"device-{uid}"}
        status = {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [{"resource": "pods", "name": pod.name, "uid": pod.uid}],
        }
        await store.patch(RESOURCE_CLAIMS, claim.name, MergePatch({"status": status}), NAMESPACE, subresource="status")


async def for_all(todo: Sequence[T], work: Callable[[T], Awaitable[None]], at_once: int) -> float:
    """Return how long the work takes with `at_once` items in progress at a time."""
    left = iter(todo)
    start = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(at_once):
            tasks.start_soon(_work, left, work)
    return time.perf_counter() - start


async def _work(left: Iterator[T], work: Callable[[T], Awaitable[None]]) -> None:
    for one in left:
        await work(one)


async def connected(drivers: DraRegistry, name: DriverName, socket: Path) -> None:
    await drivers.register(name, socket, ["v1.DRAPlugin"])
    with anyio.fail_after(DRIVER_TIMEOUT):
        while not drivers.is_usable(name):
            await drivers.changed(drivers.version)


async def run(options: argparse.Namespace) -> dict[str, float]:
    todo = pods(options.pods + 1, options.claims)
    drivers = DraRegistry(SystemClock())
    with tempfile.TemporaryDirectory(prefix="store", dir=options.directory) as folder:
        async with open_store(Path(folder) / "store.db") as store:
            await for_all(todo, lambda pod: allocate(store, options.driver, pod), WRITERS)
            manager = ClaimManager(options.directory, drivers, ClaimReader(store).read_claim, SystemClock())
            async with running(drivers.run), running(manager.run):
                await connected(drivers, DriverName(options.driver), options.driver_socket)
                return await measured(manager, todo[:-1], todo[-1], options)


async def measured(manager: ClaimManager, todo: list[Pod], first: Pod, options: argparse.Namespace) -> dict[str, float]:
    """Measure a start (`first`) or the preparation. The two marks tell the observer of the directory when the
    measurement starts and ends."""
    existing = len(manager.records())
    await manager.prepare(first)
    await manager.unprepare(first.uid)
    tune_gc()
    directory = anyio.Path(options.directory)
    await (directory / "began.mark").touch()
    written = -written_bytes()
    prepare_seconds = await for_all(todo, manager.prepare, options.at_once)
    size = (await (directory / CHECKPOINT).stat()).st_size
    unprepare_seconds = await for_all([pod.uid for pod in todo], manager.unprepare, options.at_once)
    written += written_bytes()
    await (directory / "ended.mark").touch()
    return {
        "existing": existing,
        "prepared": len(todo),
        "prepare_seconds": prepare_seconds,
        "prepare_rate": len(todo) / prepare_seconds,
        "unprepared": len(todo),
        "unprepare_seconds": unprepare_seconds,
        "unprepare_rate": len(todo) / unprepare_seconds,
        "written_bytes": written,
        "checkpoint_bytes": size,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--driver", default="bench.example.com")
    parser.add_argument("--driver-socket", type=Path, required=True)
    parser.add_argument("--pods", type=int, default=64)
    parser.add_argument("--claims", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    print(json.dumps(anyio.run(run, _options(), backend_options={"use_uvloop": True})))


if __name__ == "__main__":
    main()
