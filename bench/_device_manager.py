"""devlet's counterpart of `kubelet-devices bench`: its device manager in a separate process. Prints one line of JSON.

`python -m bench._device_manager --directory D --resource R --pods M --at-once C` starts from the checkpoint in D,
serves the registration socket for a running plugin, and admits pods of one container with one device each. A pod counts
as admitted when its device is recorded on disk.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
from bench._embedded import tune_gc
from bench._report import written_bytes

from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.devices.manager import DeviceManager
from devlet.objects.identifiers import ContainerName, PodName, PodUID, ResourceName
from devlet.objects.types.container import Container, ResourceRequirements
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec
from devlet.plugins.registration_server import RegistrationServer, remove_sockets
from devlet.state import device_checkpoint
from devlet.testing.waiting import until

PLUGIN_TIMEOUT = 60.0


def pods(resource: ResourceName, count: int) -> list[Pod]:
    return [_pod(PodUID(f"new-{number}"), resource) for number in range(count)]


def _pod(uid: PodUID, resource: ResourceName) -> Pod:
    one: dict[str, str | int | float] = {resource: "1"}
    container = Container(name=ContainerName("main"), resources=ResourceRequirements(limits=one, requests=one))
    return Pod(
        metadata=ObjectMeta(name=PodName(uid), namespace="default", uid=uid), spec=PodSpec(containers=(container,))
    )


async def admit_all(manager: DeviceManager, todo: list[Pod], at_once: int) -> float:
    """Return how long it takes to admit all pods, with `at_once` of them waiting at a time."""
    left = iter(todo)
    start = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(at_once):
            tasks.start_soon(_admit, manager, left)
    return time.perf_counter() - start


async def _admit(manager: DeviceManager, left: Iterator[Pod]) -> None:
    for pod in left:
        async with manager.attempt(pod) as attempt:
            for container in pod.spec.containers:
                await attempt.allocate(container, None)
            await attempt.commit()


async def devices_known(manager: DeviceManager, resource: ResourceName, count: int) -> None:
    with anyio.fail_after(PLUGIN_TIMEOUT):
        while manager.capacity().allocatable.get(resource, 0) < count:
            await manager.changed()


async def run(options: argparse.Namespace) -> dict[str, float]:
    manager = DeviceManager(options.directory, SystemClock())
    resource = ResourceName(options.resource)
    checkpoint = anyio.Path(options.directory) / device_checkpoint.FILE_NAME
    before = await checkpoint.stat()
    remove_sockets(options.directory)
    async with running(manager.run), running(RegistrationServer(options.directory, manager.register).run):
        existing = manager.allocated_counts().get(resource, 0)
        await devices_known(manager, resource, existing + options.pods)
        await until(checkpoint.stat, lambda now: now.st_ino != before.st_ino)  # the device list is also written
        todo = pods(resource, options.pods)
        tune_gc()
        written = -written_bytes()
        seconds = await admit_all(manager, todo, options.at_once)
        written += written_bytes()
    return {
        "existing": existing,
        "seconds": seconds,
        "admitted": options.pods,
        "rate": options.pods / seconds,
        "written_bytes": written,
        "checkpoint_bytes": (await checkpoint.stat()).st_size,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--resource", required=True)
    parser.add_argument("--pods", type=int, default=64)
    parser.add_argument("--at-once", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    print(json.dumps(anyio.run(run, _options(), backend_options={"use_uvloop": True})))


if __name__ == "__main__":
    main()
