"""GPUs that do not exist, as a DRA driver: attributes, sharing, partitions, parameters, health, and a memory.

    python -m devlet.examples.fake_gpu_dra --num-devices 8 --sick-directory /tmp/sick     # whole GPUs
    python -m devlet.examples.fake_gpu_dra --shared                  # several claims may have some memory of one GPU
    python -m devlet.examples.fake_gpu_dra --partitions 4            # a GPU as a whole, or up to four parts of it

    touch /tmp/sick/gpu-3       # gpu-3 is unhealthy, and tainted, from now on

A claim may carry parameters for it: `{"sharing": "timeslice"}`. They go into a file for each GPU, which stands for what
a real driver would do to it. That is written down first (`ClaimLog`), so that it can be undone by a driver that was
killed and started again.
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

SETTINGS = "/etc/fake-gpu"  # in the container


class Gpu(Struct, frozen=True):
    """`memory` in GiB."""

    name: str
    model: str = "Imaginary 9000"
    memory: int = 40
    numa: int = 0


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """What a claim, or its class, may say in the field `opaque`."""

    sharing: Literal["exclusive", "timeslice"] = "exclusive"


class FakeGpus(DraDriver):
    """A DRA driver with GPUs that do not exist."""

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

    # What there is

    async def devices(self) -> AsyncIterator[Mapping[str, Pool]]:
        async for ill in self._ill():
            devices = [device for gpu in self.gpus for device in self._devices(gpu, gpu.name in ill)]
            counters = {gpu.name: {"memory": f"{gpu.memory}Gi"} for gpu in self.gpus} if self.partitions else {}
            yield {self.pool: Pool(devices, counters)}

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        async for ill in self._ill():
            yield [
                DeviceHealth(self.pool, device.name, UNHEALTHY if gpu.name in ill else HEALTHY, ill.get(gpu.name, ""))
                for gpu in self.gpus
                for device in self._devices(gpu, False)
            ]

    async def _ill(self) -> AsyncIterator[Mapping[str, str]]:
        """What is wrong, by name of the GPU."""
        if self.sick is None:
            yield {}
            return
        async for _ in changes(self.sick):
            yield await to_thread.run_sync(_texts, self.sick)

    def _devices(self, gpu: Gpu, ill: bool) -> list[Device]:
        """The GPU, and its partitions: none of them is free while all of its memory is taken, and the reverse."""
        attributes: dict[str, Attribute] = {
            "model": gpu.model,
            "uuid": self._uuid(gpu.name),
            "driverVersion": Version("1.2.0"),
            "numa": gpu.numa,
            "type": "gpu",
        }
        taints = [Taint(f"{self.name}/unhealthy")] if ill else []
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
        each = {"default": size, "validRange": {"min": "1Gi", "step": "1Gi"}}  # a claim that says nothing takes all
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
        """Variables for gpu-0 begin with GPU_0: a container may have several GPUs."""
        name = result.device.upper().replace("-", "_")
        variables = {name: self._uuid(result.device), f"{name}_SHARING": sharing}
        if memory := result.consumed_capacity.get("memory"):
            variables[f"{name}_MEMORY"] = str(memory)
        return variables

    # As a program

    def arguments(self, parser: ArgumentParser) -> None:
        name = partial(parser.add_argument, metavar="NAME")
        number = partial(parser.add_argument, metavar="N", type=int)
        ill = "a file in it with the name of a GPU, and what is wrong in it, makes that GPU unhealthy"
        name("--driver-name", default=self.name, help="what device classes select (%(default)s)")
        number("--num-devices", default=4, help="how many GPUs (%(default)s)")
        name("--model", default="Imaginary 9000", help="an attribute of all of them (%(default)s)")
        number("--memory", default=40, help="GiB of each of them (%(default)s)")
        number("--numa-nodes", default=of_machine(), help="over how many NUMA nodes they are spread (%(default)s)")
        parser.add_argument("--sick-directory", metavar="DIR", type=Path, help=ill)
        ways = parser.add_mutually_exclusive_group()
        ways.add_argument("--shared", action="store_true", help="several claims may have memory of one GPU")
        ways.add_argument("--partitions", metavar="N", type=int, default=0, help="in how many parts a GPU is offered")

    def configure(self, arguments: Namespace) -> None:
        count, numa_nodes = arguments.num_devices, arguments.numa_nodes
        if min(count, numa_nodes, arguments.memory) < 1 or arguments.partitions < 0:
            raise InvalidInput(
                "--num-devices, --numa-nodes and --memory: at least 1 is needed; --partitions: at least 0"
            )
        self.name = arguments.driver_name
        numa_node_of = spread(count, numa_nodes)
        self.gpus = [Gpu(name, arguments.model, arguments.memory, numa) for name, numa in numa_node_of.items()]
        self.shared, self.partitions, self.sick = arguments.shared, arguments.partitions, arguments.sick_directory


def _parameters(claim: Claim, result: DeviceResult) -> Parameters:
    """Those of the claim win over those of its class."""
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
