"""The two drivers of the tour: a device plugin with FPGAs and a DRA driver with GPUs, neither of which exists.

They are written with the SDK, and speak to the node as any driver does, over its sockets and its API; only that they
live in the same process.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from devlet.cluster.client import Cluster
from devlet.daemon.root import CDI, DEVICE_PLUGINS
from devlet.demo.cast import FPGA, GPU_DRIVER, NODE
from devlet.examples.fake_gpu_dra import FakeGpus, Gpu
from devlet.kit.parts import running
from devlet.objects.types.claim import DeviceResult
from devlet.sdk import DevicePlugin, DraOptions, Grant, PluginDevice, PluginOptions

FPGAS = ("fpga-0", "fpga-1")
GPUS = {gpu.name: gpu for gpu in (Gpu("gpu-0"), Gpu("gpu-1"), Gpu("gpu-2", "Imaginary 9900", memory=80))}


class Fpgas(DevicePlugin):
    resource = FPGA

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        yield [PluginDevice(name) for name in FPGAS]

    async def allocate(self, ids: Sequence[str]) -> Grant:
        return Grant(env={"FPGA": ",".join(ids)})


class Gpus(FakeGpus):
    """With one variable, for a table that has little room."""

    name = GPU_DRIVER

    def environment(self, result: DeviceResult, sharing: str) -> Mapping[str, str]:
        return {"GPU": result.device}


def device_plugin(root: Path) -> AbstractAsyncContextManager[None]:
    """A moment after it was entered the node knows it."""
    return running(partial(Fpgas().run, PluginOptions(root / DEVICE_PLUGINS)))


def dra_driver(root: Path, cluster: Cluster) -> AbstractAsyncContextManager[None]:
    """A moment after it was entered the node knows it, and its devices are published."""
    options = DraOptions(NODE, kubelet=root, cdi_directory=root / CDI)
    return running(partial(Gpus(list(GPUS.values())).run, options, cluster))
