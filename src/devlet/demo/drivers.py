"""The two drivers of the tour: a device plugin with FPGAs and a DRA driver with GPUs, neither of which exists.

They speak to the node as any driver does, over its sockets and its API; only that they live in the same process.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from devlet.cluster.client import Cluster
from devlet.daemon.node import CDI, DEVICE_PLUGINS
from devlet.demo.cast import FPGA, GPU_DRIVER, NODE
from devlet.objects.documents import Document
from devlet.objects.identifiers import DeviceID
from devlet.objects.kinds import NODES
from devlet.objects.prepared import PreparedDevice
from devlet.plugins.devices import Device, Grant
from devlet.plugins.dra import ClaimRef
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_cluster import allocated, publish
from devlet.testing.fake_dra_driver import FakeDraDriver

FPGAS = ("fpga-0", "fpga-1")
GPUS = {"gpu-0": ("Imaginary 9000", "40Gi"), "gpu-1": ("Imaginary 9000", "40Gi"), "gpu-2": ("Imaginary 9900", "80Gi")}


@asynccontextmanager
async def device_plugin(root: Path) -> AsyncIterator[None]:
    """Entered when it is registered."""
    devices = [Device(DeviceID(name)) for name in FPGAS]
    async with FakeDevicePlugin(root / DEVICE_PLUGINS, FPGA, devices) as plugin:
        plugin.grant = _name_fpgas
        await plugin.register()
        yield


@asynccontextmanager
async def dra_driver(root: Path, cluster: Cluster) -> AsyncIterator[None]:
    """Entered when it is registered and has published its devices."""
    async with FakeDraDriver(root, GPU_DRIVER, pool=NODE, cdi_directory=root / CDI) as driver:
        driver.handler = allocated(cluster, GPU_DRIVER)
        driver.prepared.environment = _name_gpu
        await driver.until_registered()
        node = await cluster.get(NODES, NODE)
        devices = [_gpu(name, model, memory) for name, (model, memory) in GPUS.items()]
        await publish(cluster, GPU_DRIVER, NODE, devices, node_uid=node["metadata"]["uid"])
        yield


def _gpu(name: str, model: str, memory: str) -> Document:
    return {"name": name, "attributes": {"model": {"string": model}}, "capacity": {"memory": {"value": memory}}}


def _name_fpgas(ids: Sequence[str]) -> Grant:
    return Grant(env={"FPGA": ",".join(ids)})


def _name_gpu(claim: ClaimRef, device: PreparedDevice) -> Mapping[str, str]:
    return {"GPU": device.device}
