"""The two drivers of the demo: a device plugin with simulated FPGAs and a DRA driver with simulated GPUs.

They are written with the SDK and talk to the node as any other driver does, over its sockets and its API. The only
difference is that they run in the same process.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from devlet.cluster.client import Cluster
from devlet.daemon.root import CDI, DEVICE_PLUGINS
from devlet.demo.manifests import FPGA, GPU_DRIVER, NODE
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
    """GPUs that set a single short variable, which fits into a table."""

    name = GPU_DRIVER

    def environment(self, result: DeviceResult, sharing: str) -> Mapping[str, str]:
        return {"GPU": result.device}


def device_plugin(root: Path) -> AbstractAsyncContextManager[None]:
    """Run the device plugin. The node knows it shortly after the block was entered."""
    return running(partial(Fpgas().run, PluginOptions(root / DEVICE_PLUGINS)))


def dra_driver(root: Path, cluster: Cluster) -> AbstractAsyncContextManager[None]:
    """Run the DRA driver. The node knows it, and its devices are published, shortly after the block was entered."""
    options = DraOptions(NODE, kubelet=root, cdi_directory=root / CDI)
    return running(partial(Gpus(list(GPUS.values())).run, options, cluster))
