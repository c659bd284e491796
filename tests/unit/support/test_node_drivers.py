"""Drivers of one test. What devlet does with them is in tests/flows."""

from pathlib import Path

import pytest

from devlet.testing.fake_dra_driver import UNPREPARE, FakeDraDriver
from tests.support.claim_node import ClaimNode
from tests.support.node_drivers import node_drivers

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def test_nothing_of_a_test_is_left(root: Path) -> None:
    async with ClaimNode(root) as node:
        async with node_drivers(node) as drivers:
            gpu = await drivers.start("gpu")
            nic = await drivers.add("nic")
            assert (gpu.name, nic.name) == ("gpu.example.com", "nic.example.com")
            assert nic.statuses == []
            await node.run_pod("train", gpu.name)
            gpu.fail(UNPREPARE)
            await node.ask_to_delete("train")
            await gpu.until_asked(UNPREPARE)
        assert await node.pods() == {}
        assert await node.events("Started") == []
        assert node.claim_checkpoint() == {}
        assert not gpu.prepared


async def test_what_is_to_stay_stays(root: Path) -> None:
    async with ClaimNode(root) as node, FakeDraDriver(root, "other.example.com") as other:
        await node.run_pod("stays", other.name)
        async with node_drivers(node, ["stays"]) as drivers:
            gpu = await drivers.start("gpu")
            await node.run_pod("goes", gpu.name)
        assert list(await node.pods()) == list(node.claim_checkpoint()) == ["stays"]
        assert len(other.prepared) == 1


async def test_a_driver_that_keeps_a_claim_is_a_failure(root: Path) -> None:
    async with ClaimNode(root) as node:
        with pytest.raises(AssertionError, match="still prepared"):
            async with node_drivers(node) as drivers:
                gpu = await drivers.start("gpu")
                gpu.prepared.remove = lambda uid: None  # type: ignore[method-assign]
                await node.run_pod("train", gpu.name)
