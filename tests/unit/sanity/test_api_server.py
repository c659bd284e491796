"""The cluster of a driver under test is served, and says what it refused."""

from pathlib import Path

import pytest

from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.errors import DevletError, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES
from devlet.sanity import api_server

pytestmark = pytest.mark.anyio


def a_slice(devices: int) -> Document:
    return {
        "metadata": {"name": "leds"},
        "spec": {
            "driver": "led.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"led-{number}"} for number in range(devices)],
        },
    }


async def test_a_driver_finds_its_node_there(root: Path) -> None:
    async with (
        api_server.embedded(root, "n1") as api,
        connected(kubeconfig.connection([api.kubeconfig])) as driver,
    ):
        assert (await driver.get(NODES, "n1"))["metadata"]["uid"] == api.node_uid


async def test_what_was_refused_is_known_and_what_was_taken_is_there(root: Path) -> None:
    async with (
        api_server.embedded(root, "n1") as api,
        connected(kubeconfig.connection([api.kubeconfig])) as driver,
    ):
        with pytest.raises(DevletError):
            await driver.create(RESOURCE_SLICES, a_slice(129))
        assert api.refusals is not None
        [refusal] = api.refusals
        assert "must have at most 128 items" in refusal
        await driver.create(RESOURCE_SLICES, a_slice(128))
        assert len(api.refusals) == 1
        assert len((await api.cluster.list(RESOURCE_SLICES)).items) == 1


async def test_another_cluster_can_be_joined(root: Path) -> None:
    async with api_server.embedded(root, "n1") as api:
        async with api_server.joined(api.kubeconfig, "n1") as joined:
            assert joined.node_uid == api.node_uid
            assert joined.refusals is None
        with pytest.raises(NotFound):
            async with api_server.joined(api.kubeconfig, "n2"):
                pass
