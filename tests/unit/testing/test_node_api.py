"""A node through its socket, whoever runs it."""

from pathlib import Path

import pytest

from devlet.errors import AlreadyExists, NotFound, Unavailable
from devlet.testing.builders import pod
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.node import Node
from devlet.testing.node_api import PODS, NodeApi, devices_in_status

pytestmark = pytest.mark.anyio

GPU = "vendor.com/gpu"


async def test_it_sees_what_a_node_has_and_who_holds_it(root: Path) -> None:
    async with Node.start(root), FakeDevicePlugin(root / "device-plugins", GPU, 2, follow=True):
        api = NodeApi(root)
        await api.until_healthy(GPU, 2)
        await api.call("POST", PODS, pod("train", limits={GPU: 1}))
        document = await api.until_phase("train", "Running")
        [held] = devices_in_status(document)[GPU]
        assert await api.held() == {"train": {GPU: {held}}}
        assert (await api.devices())[GPU][held]["holder"]["pod"] == "train"
        assert (await api.plugin_states())["vendor.com:gpu"]["state"] == "Connected"
        assert list(await api.containers("train")) == ["main"]
        assert await api.environment("train") == {"VENDOR_COM_GPU": held}
        with pytest.raises(NotFound, match="pod train has no container 'mian', only main"):
            await api.environment("train", "mian")
        assert (await api.until_event("Scheduled"))["involvedObject"]["name"] == "train"
        assert (await api.driver_states(), await api.prepared(), await api.slices()) == ({}, {}, {})
        await api.annotate("train", "devlet.dev/exit-code", "0")
        await api.call("DELETE", f"{PODS}/train")
        await api.until_gone("train")
        assert await api.pods() == {}


async def test_a_pod_that_does_not_run_in_time_is_reported_with_its_reasons(root: Path) -> None:
    async with Node.start(root) as node:
        await node.create_pod("train", limits={GPU: 1})
        await node.until_event("FailedScheduling")
        with pytest.raises(AssertionError) as caught:
            await node.until_phase("train", "Running", within=0.2)
    text = str(caught.value)
    assert text.startswith("pod train: not within 0.2 s; it is Pending\n  PodScheduled is False: 0/1 nodes")
    assert "Insufficient vendor.com/gpu" in text and "Warning event FailedScheduling" in text


async def test_a_missing_pod_is_reported(root: Path) -> None:
    async with Node.start(root) as node:
        assert await node.pod("train") is None
        for ask in (node.containers, node.environment):
            with pytest.raises(NotFound, match='"train" not found'):
                await ask("train")
        with pytest.raises(AssertionError, match="there is no such pod"):
            await node.until_phase("train", "Running", within=0.2)


async def test_what_the_api_says_against_a_call_is_raised(root: Path) -> None:
    async with Node.start(root) as node:
        await node.call("POST", PODS, pod("first"))
        with pytest.raises(AlreadyExists):
            await node.call("POST", PODS, pod("first"))
        with pytest.raises(NotFound):
            await node.call("GET", f"{PODS}/second")
        assert (await node.read("/nowhere"))[0] == 404
        await node.stop()
        with pytest.raises(Unavailable):
            await node.pods()


def test_a_status_without_devices_has_none() -> None:
    assert devices_in_status(pod("p")) == {}
