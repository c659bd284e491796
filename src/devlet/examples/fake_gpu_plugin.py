"""Simulated GPUs, as a device plugin: NUMA nodes, health, preferred devices, variables and a mount.

    python -m devlet.examples.fake_gpu_plugin --num-devices 8 --numa-nodes 2 --sick-directory /tmp/sick

    touch /tmp/sick/gpu-3       # makes gpu-3 unhealthy
    rm /tmp/sick/gpu-3          # makes it healthy again

A container gets the names of its GPUs in `GPU`, and a directory of its own at /var/cache/gpu. A device plugin is not
notified when a container has ended, so the directory is emptied when its GPU is allocated again.
"""

import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock

from anyio import to_thread

from devlet.errors import InvalidInput
from devlet.examples.numa import of_machine, spread
from devlet.sdk import HEALTHY, UNHEALTHY, DevicePlugin, Grant, Mount, PluginDevice
from devlet.sdk.hotplug import changes

CACHE = "/var/cache/gpu"  # path in the container

_one_at_a_time = Lock()


class FakeGpus(DevicePlugin):
    """A device plugin with simulated GPUs."""

    resource = "example.com/gpu"

    def __init__(
        self, count: int = 4, numa_nodes: int = 1, cache: Path | None = None, sick: Path | None = None
    ) -> None:
        self.numa_nodes = spread(count, numa_nodes)
        self.cache = cache
        self.sick = sick

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        yield self._devices()
        if self.sick is not None:
            async for _ in changes(self.sick):
                yield self._devices()

    def _devices(self) -> list[PluginDevice]:
        return [
            PluginDevice(name, UNHEALTHY if self.sick and (self.sick / name).exists() else HEALTHY, (numa_node,))
            for name, numa_node in self.numa_nodes.items()
        ]

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        """Prefer GPUs of one NUMA node: that of the required GPUs, or else the node with the fewest GPUs left over."""
        missing = size - len(must_include)
        begun = {self.numa_nodes[each] for each in must_include}
        free: dict[int, list[str]] = {}
        for each in available:
            if each not in must_include:
                free.setdefault(self.numa_nodes[each], []).append(each)

        def rank(numa_node: int) -> tuple[bool, bool, int]:
            left = len(free[numa_node]) - missing
            return numa_node not in begun, left < 0, abs(left)

        nearest = [each for numa_node in sorted(free, key=rank) for each in free[numa_node]]
        return [*must_include, *nearest[:missing]]

    async def allocate(self, ids: Sequence[str]) -> Grant:
        gpus = sorted(ids)
        env = {"GPU": ",".join(gpus)}
        if self.cache is None:
            return Grant(env=env)
        directory = self.cache / gpus[0]  # no other container has this GPU
        await to_thread.run_sync(_empty, directory)
        return Grant(env=env, mounts=[Mount(str(directory), CACHE, read_only=False)])

    # Flags

    def arguments(self, parser: ArgumentParser) -> None:
        number = partial(parser.add_argument, metavar="N", type=int)
        directory = partial(parser.add_argument, metavar="DIR", type=Path)
        parser.add_argument(
            "--resource", metavar="NAME", default=self.resource, help="resource that pods ask for (%(default)s)"
        )
        number("--num-devices", default=4, help="number of GPUs (%(default)s)")
        number("--numa-nodes", default=of_machine(), help="number of NUMA nodes to spread them over (%(default)s)")
        directory("--cache-directory", help="parent of the containers' directories; KUBELET_ROOT/fake-gpu by default")
        directory("--sick-directory", help="a file with the name of a GPU makes that GPU unhealthy")

    def configure(self, arguments: Namespace) -> None:
        if arguments.num_devices < 1 or arguments.numa_nodes < 1:
            raise InvalidInput("--num-devices and --numa-nodes must be at least 1")
        self.resource = arguments.resource
        self.numa_nodes = spread(arguments.num_devices, arguments.numa_nodes)
        self.cache = arguments.cache_directory or arguments.kubelet / "fake-gpu"
        self.sick = arguments.sick_directory


def _empty(directory: Path) -> None:
    """Empty the directory; two calls for the same GPU may overlap."""
    with _one_at_a_time:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    FakeGpus().main()
