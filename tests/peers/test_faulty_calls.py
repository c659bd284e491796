"""Unmodified Go drivers with faults on the wire between them and a node. Neither of them knows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.testing.crashes import crash_at, crash_points
from devlet.testing.driver_runner import DriverRunner
from devlet.testing.grpc_faults import Faults, Moment
from devlet.testing.node import Node

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

GPU = "gpu.example.com"
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"


@asynccontextmanager
async def example_driver(peers: "Peers", node: Node, faults: Faults) -> AsyncIterator[DriverRunner]:
    peers.need("dra-example-kubeletplugin")
    command: list[str | Path] = [peers.binaries / "dra-example-kubeletplugin", "--num-devices=2"]
    async with node.driver(command, name=GPU, faults=faults) as driver:
        await node.until_published(GPU, 2)
        await node.create_class()
        yield driver


async def run_pod(node: Node, name: str) -> None:
    await node.create_claim(name)
    await node.create_pod(name, claim=name)


async def end_pod(node: Node, name: str) -> None:
    await node.delete("Pod", name)
    await node.until_gone(name)
    await node.delete("ResourceClaim", name)


async def test_a_delayed_prepare_is_waited_for(peers: "Peers") -> None:
    faults = Faults()
    async with Node.start() as node, example_driver(peers, node, faults):
        delay = faults.delay(PREPARE, 0.5)
        await run_pod(node, "train")
        await node.until_running("train")
        assert delay.hits == 1
        (call,) = await faults.until_over(PREPARE)
        assert (call.status, [claim.name for claim in call.request.claims]) == ("OK", ["train"])


async def test_a_prepare_that_takes_longer_than_the_node_waits_is_tried_again(peers: "Peers") -> None:
    faults = Faults()
    async with Node.start(timeouts={"draCall": 1}) as node, example_driver(peers, node, faults):
        faults.delay(PREPARE, 3.0, after=True, times=1)
        await run_pod(node, "train")
        await node.until_running("train")
        statuses = [call.status for call in await faults.until_over(PREPARE, 2)]
        assert sorted(statuses) == ["CANCELLED", "OK"]


@pytest.mark.parametrize("moment", Moment)
async def test_a_disconnected_prepare_and_unprepare_are_repeated(peers: "Peers", moment: Moment) -> None:
    faults = Faults()
    async with Node.start(timeouts={"claimReconcile": 1}) as node, example_driver(peers, node, faults):
        rules = [faults.disconnect(method, moment, times=1) for method in (PREPARE, UNPREPARE)]
        await run_pod(node, "train")
        await node.until_running("train")
        assert any(name.startswith("GPU_DEVICE") for name in await node.environment("train"))
        await end_pod(node, "train")
        assert [rule.hits for rule in rules] == [1, 1]
        calls = len(faults.asked(PREPARE))
        assert calls == 1 if moment is Moment.AFTER else calls >= 2


async def test_the_driver_may_be_killed_at_every_point_of_its_work(peers: "Peers") -> None:
    faults = Faults()
    async with Node.start(timeouts={"claimReconcile": 1}) as node, example_driver(peers, node, faults) as driver:

        async def scenario() -> None:
            await run_pod(node, "train")
            await node.until_running("train")
            await end_pod(node, "train")

        async def kill_and_restart() -> None:
            await driver.kill()
            await driver.restart()

        faults.forget_calls()
        await scenario()
        points = [point for point in crash_points(faults.calls) if point.path.endswith((PREPARE, UNPREPARE))]
        assert len(points) >= 4
        for point in points:
            async with crash_at(faults, point, kill_and_restart):
                await scenario()


async def test_a_device_plugin_that_registers_late_is_used(peers: "Peers") -> None:
    peers.need("generic-device-plugin")
    device = '--device={"name": "null", "groups": [{"count": 3, "paths": [{"path": "/dev/null"}]}]}'
    command: list[str | Path] = [
        peers.binaries / "generic-device-plugin",
        "--plugin-directory={device_plugins}",
        "--listen=127.0.0.1:0",
        device,
    ]
    faults = Faults()
    faults.delay("Register", 0.2)
    async with Node.start() as node, node.driver(command, resource="squat.ai/null", faults=faults):
        await node.until_healthy("squat.ai/null", 3)
        await node.create_pod("p", limits={"squat.ai/null": 1})
        await node.until_running("p")
        assert [call.status for call in faults.asked("Allocate")] == ["OK"]
        assert faults.asked("Register")[0].request.resource_name == "squat.ai/null"


async def test_a_plugin_that_knows_only_the_directory_of_the_kubelet_meets_faults_too(peers: "Peers") -> None:
    peers.need("sample-device-plugin")
    faults = Faults()
    late = faults.delay("ListAndWatch", 0.2)
    async with Node.start() as node:
        command = [peers.binaries / "sample-device-plugin"]
        async with node.driver(command, resource="example.com/resource", kubelet_paths=True, faults=faults):
            await node.until_healthy("example.com/resource", 2)
            assert late.hits
