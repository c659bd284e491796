"""Simulated GPUs, as a DRA driver: attributes, sharing, partitions, parameters, health, and a log of claims.

    python -m devlet.examples.fake_gpu_dra --num-devices 8 --sick-directory /tmp/sick     # whole GPUs
    python -m devlet.examples.fake_gpu_dra --shared                  # several claims can share the memory of one GPU
    python -m devlet.examples.fake_gpu_dra --partitions 4            # a whole GPU, or up to four parts of it

    touch /tmp/sick/gpu-3       # makes gpu-3 unhealthy, and taints it

A claim can carry parameters for the driver: `{"sharing": "timeslice"}`. The driver writes them to a file for each GPU,
where a real driver would configure the GPU. It records the claim first (`ClaimLog`), so that it can undo the change
even if it is killed and restarted.
"""

import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal
from uuid import NAMESPACE_DNS, uuid5

import msgspec
from anyio import to_thread
from msgspec import Struct

from devlet.errors import InvalidInput
from devlet.examples.numa import of_machine, spread
from devlet.objects.types.claim import DeviceResult
from devlet.sdk import (
    HEALTHY,
    UNHEALTHY,
    Capacity,
    Claim,
    ClaimLog,
    ClaimRef,
    Device,
    DeviceHealth,
    DraDriver,
    DraOptions,
    Mount,
    Pool,
    Prepared,
    Taint,
    Version,
)
from devlet.sdk.hotplug import changes
from devlet.sdk.values import Attribute

SETTINGS = "/etc/fake-gpu"  # path in the container


class Gpu(Struct, frozen=True):
    """A GPU, with its memory in GiB."""

    name: str
    model: str = "Imaginary 9000"
    memory: int = 40
    numa: int = 0


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters that a claim or its class can have in the field `opaque`."""

    sharing: Literal["exclusive", "timeslice"] = "exclusive"


class FakeGpus(DraDriver):
    """A DRA driver with simulated GPUs."""

    name = "gpu.example.com"
    parameters = Parameters

    def __init__(
        self, gpus: Sequence[Gpu] = (), *, shared: bool = False, partitions: int = 0, sick: Path | None = None
    ) -> None:
        self.gpus = gpus
        self.shared = shared
        self.partitions = partitions
        self.sick = sick

    async def setup(self, options: DraOptions) -> None:
        self.pool = options.node_name
        self.files = options.data(self.name) / "claims"
        self.log = ClaimLog(options.data(self.name) / "claims.json", dict[str, str])

    # Devices

    async def devices(self) -> AsyncIterator[Mapping[str, Pool]]:
        async for sick in self._sick():
            devices = [device for gpu in self.gpus for device in self._devices(gpu, gpu.name in sick)]
            counters = {gpu.name: {"memory": f"{gpu.memory}Gi"} for gpu in self.gpus} if self.partitions else {}
            yield {self.pool: Pool(devices, counters)}

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        async for sick in self._sick():
            yield [
                DeviceHealth(self.pool, device.name, UNHEALTHY if gpu.name in sick else HEALTHY, sick.get(gpu.name, ""))
                for gpu in self.gpus
                for device in self._devices(gpu, False)
            ]

    async def _sick(self) -> AsyncIterator[Mapping[str, str]]:
        """Yield the names of the unhealthy GPUs, each with the problem, again after each change."""
        if self.sick is None:
            yield {}
            return
        async for _ in changes(self.sick):
            yield await to_thread.run_sync(_texts, self.sick)

    def _devices(self, gpu: Gpu, sick: bool) -> list[Device]:
        """Return the GPU and its partitions, which share its memory: either it or partitions can be allocated."""
        attributes: dict[str, Attribute] = {
            "model": gpu.model,
            "uuid": self._uuid(gpu.name),
            "driverVersion": Version("1.2.0"),
            "numa": gpu.numa,
            "type": "gpu",
        }
        taints = [Taint(f"{self.name}/unhealthy")] if sick else []
        whole = Device(gpu.name, attributes, {"memory": self._memory(gpu)}, taints, self._part(gpu, f"{gpu.memory}Gi"))
        if self.shared:
            return [msgspec.structs.replace(whole, allow_multiple_allocations=True)]
        size = f"{gpu.memory * 1024 // self.partitions}Mi" if self.partitions else ""
        return [whole] + [
            Device(
                f"{gpu.name}-part-{number}",
                attributes | {"type": "partition", "uuid": self._uuid(f"{gpu.name}-part-{number}")},
                {"memory": size},
                taints,
                self._part(gpu, size),
            )
            for number in range(self.partitions)
        ]

    def _memory(self, gpu: Gpu) -> str | Capacity:
        size = f"{gpu.memory}Gi"
        each = {"default": size, "validRange": {"min": "1Gi", "step": "1Gi"}}  # a claim without an amount takes all
        return Capacity(size, each) if self.shared else size

    def _part(self, gpu: Gpu, size: str) -> dict[str, dict[str, str]]:
        return {gpu.name: {"memory": size}} if self.partitions else {}

    def _uuid(self, device: str) -> str:
        return f"GPU-{uuid5(NAMESPACE_DNS, f'{device}.{self.pool}.{self.name}')}"

    # Claims

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        directory = self.files / claim.uid
        sharing: dict[str, str] = {result.device: _parameters(claim, result).sharing for result in claim.results}
        async with self.log.preparing(claim.ref, sharing):
            await to_thread.run_sync(_write, directory, sharing)
        return [
            Prepared(
                result,
                env=self.environment(result, sharing[result.device]),
                mounts=[Mount(str(directory / result.device), f"{SETTINGS}/{result.device}")],
                metadata={"uuid": self._uuid(result.device)},
            )
            for result in claim.results
        ]

    async def unprepare(self, claim: ClaimRef) -> None:
        async with self.log.unpreparing(claim.uid) as entry:
            if entry is not None:
                await to_thread.run_sync(_remove, self.files / claim.uid)

    def environment(self, result: DeviceResult, sharing: str) -> Mapping[str, str]:
        """Return variables that begin with GPU_0 for gpu-0, because a container can have several GPUs."""
        name = result.device.upper().replace("-", "_")
        variables = {name: self._uuid(result.device), f"{name}_SHARING": sharing}
        if memory := result.consumed_capacity.get("memory"):
            variables[f"{name}_MEMORY"] = str(memory)
        return variables

    # Flags

    def arguments(self, parser: ArgumentParser) -> None:
        name = partial(parser.add_argument, metavar="NAME")
        number = partial(parser.add_argument, metavar="N", type=int)
        sick = "a file with the name of a GPU makes that GPU unhealthy; it contains the problem"
        name("--driver-name", default=self.name, help="name of the driver, which device classes select (%(default)s)")
        number("--num-devices", default=4, help="number of GPUs (%(default)s)")
        name("--model", default="Imaginary 9000", help="attribute of all GPUs (%(default)s)")
        number("--memory", default=40, help="memory of each GPU in GiB (%(default)s)")
        number("--numa-nodes", default=of_machine(), help="number of NUMA nodes to spread them over (%(default)s)")
        parser.add_argument("--sick-directory", metavar="DIR", type=Path, help=sick)
        ways = parser.add_mutually_exclusive_group()
        ways.add_argument("--shared", action="store_true", help="let several claims share the memory of a GPU")
        ways.add_argument(
            "--partitions", metavar="N", type=int, default=0, help="number of parts in which a GPU is also offered"
        )

    def configure(self, arguments: Namespace) -> None:
        count, numa_nodes = arguments.num_devices, arguments.numa_nodes
        if min(count, numa_nodes, arguments.memory) < 1 or arguments.partitions < 0:
            raise InvalidInput(
                "--num-devices, --numa-nodes and --memory must be at least 1, and --partitions at least 0"
            )
        self.name = arguments.driver_name
        numa_node_of = spread(count, numa_nodes)
        self.gpus = [Gpu(name, arguments.model, arguments.memory, numa) for name, numa in numa_node_of.items()]
        self.shared, self.partitions, self.sick = arguments.shared, arguments.partitions, arguments.sick_directory


def _parameters(claim: Claim, result: DeviceResult) -> Parameters:
    """Return the parameters of the claim, or else those of its class."""
    return [Parameters(), *claim.parameters_for(result, Parameters)][-1]


def _texts(directory: Path) -> dict[str, str]:
    files = [each for each in directory.iterdir() if each.is_file()] if directory.exists() else []
    return {each.name: each.read_text(errors="replace").strip() for each in files}


def _write(directory: Path, sharing: Mapping[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for device, text in sharing.items():
        (directory / device).write_text(f"{text}\n")


def _remove(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)


if __name__ == "__main__":
    FakeGpus().main()
