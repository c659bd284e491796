"""test_tour shows that pods get the devices of these drivers."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from devlet.cluster.remote.client import connected
from devlet.cluster.remote.connection import at_socket
from devlet.daemon.config import Config
from devlet.daemon.kube_api import SOCKET
from devlet.daemon.main import embedded
from devlet.demo import drivers, manifests
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES
from devlet.serve.kube_api.paths import VIEWS
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

DEVICES = VIEWS.resource("devlet.dev/v1alpha1", "devices")
DRIVERS = VIEWS.resource("devlet.dev/v1alpha1", "drivers")


async def test_a_node_knows_both_drivers_and_their_devices(root: Path) -> None:
    node = embedded(Config(root=root, node_name=manifests.NODE))
    async with node, connected(at_socket(root / SOCKET)) as cluster:

        async def fpgas() -> list[str]:
            return [device["spec"]["id"] for device in (await cluster.list(DEVICES)).items]

        async def names() -> list[str]:
            return [driver["metadata"]["name"] for driver in (await cluster.list(DRIVERS)).items]

        async def slices() -> Sequence[Document]:
            return (await cluster.list(RESOURCE_SLICES)).items

        async with drivers.device_plugin(root), drivers.dra_driver(root, cluster):
            await until(fpgas, lambda found: found == list(drivers.FPGAS))
            await until(names, lambda found: found == [manifests.GPU_DRIVER])
            (published,) = await until(slices, bool)
            (owner,) = published["metadata"]["ownerReferences"]
            assert [device["name"] for device in published["spec"]["devices"]] == list(drivers.GPUS)
            assert owner["uid"] == (await cluster.get(NODES, manifests.NODE))["metadata"]["uid"]
