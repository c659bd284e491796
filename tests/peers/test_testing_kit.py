"""Unmodified Go drivers beside a node in the process of the test, with the flags that each has."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.testing.node import Node

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

GPU = "gpu.example.com"


async def test_the_example_driver_is_run_killed_and_started_again(peers: "Peers") -> None:
    peers.need("dra-example-kubeletplugin")
    async with Node.start() as node:
        async with node.driver([peers.binaries / "dra-example-kubeletplugin", "--num-devices=2"], name=GPU) as driver:
            await node.until_published(GPU, 2)
            await node.create_class()
            await node.create_claim("training", count=2)
            await node.create_pod("train", claim="training")
            await node.until_running("train")
            assert any(name.startswith("GPU_DEVICE") for name in await node.environment("train"))
            await driver.kill()
            await node.crash()
            await node.restart()
            await driver.restart()
            await node.delete("Pod", "train")
            await node.until_gone("train")


async def test_a_device_plugin_has_flags_of_its_own(peers: "Peers") -> None:
    peers.need("generic-device-plugin")
    device = '--device={"name": "null", "groups": [{"count": 3, "paths": [{"path": "/dev/null"}]}]}'
    command: list[str | Path] = [
        peers.binaries / "generic-device-plugin",
        "--plugin-directory={device_plugins}",
        "--listen=127.0.0.1:0",
        device,
    ]
    async with Node.start() as node, node.driver(command, resource="squat.ai/null"):
        await node.until_healthy("squat.ai/null", 3)
        await node.create_pod("p", limits={"squat.ai/null": 1})
        await node.until_running("p")
        assert len((await node.held())["p"]["squat.ai/null"]) == 1


async def test_a_plugin_that_knows_only_the_directory_of_the_kubelet_finds_it(peers: "Peers") -> None:
    peers.need("sample-device-plugin")
    async with Node.start() as node:
        command = [peers.binaries / "sample-device-plugin"]
        async with node.driver(command, resource="example.com/resource", kubelet_paths=True):
            await node.until_healthy("example.com/resource", 2)
