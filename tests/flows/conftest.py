"""Nodes, and DRA drivers on them that leave nothing behind."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from devlet.testing.claim_node import CLAIMS, SLICES, ClaimNode
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import EVENTS, PODS

TIMES = """
timeouts:
  draCall: 1s
  sliceWipeDelay: 500ms
  claimReconcile: 1s
  healthRetry: 100ms
"""


@pytest.fixture(scope="module")
async def module_node() -> AsyncIterator[ClaimNode]:
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with ClaimNode(root, TIMES) as node:
        yield node
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def node(module_node: ClaimNode) -> ClaimNode:
    """One for all tests of a module, which has short time-outs."""
    return module_node


class Drivers:
    """Drivers of a test, by the first word of their name."""

    def __init__(self, node: ClaimNode, stack: AsyncExitStack) -> None:
        self.all: list[FakeDraDriver] = []
        self._node = node
        self._stack = stack

    async def add(self, name: str, **options: Any) -> FakeDraDriver:
        """One that is called `NAME.example.com`, and is not started before it is told to."""
        driver = FakeDraDriver(self._node.root, f"{name}.example.com", autostart=False, **options)
        self.all.append(await self._stack.enter_async_context(driver))
        return driver

    async def start(self, name: str, **options: Any) -> FakeDraDriver:
        """One that can be called."""
        driver = await self.add(name, **options)
        await driver.start()
        await self._node.until_connected(driver)
        return driver

    async def clean_up(self) -> None:
        """Whatever a test has done: with good drivers all of it can be undone."""
        for driver in self.all:
            driver.recover()
            await driver.start()
        for path in (PODS, CLAIMS, SLICES):
            await self._node.call("DELETE", path)
        await self._node.until_gone(*await self._node.pods())
        await self._node.until_forgotten(*self._node.claim_checkpoint())
        await self._node.call("DELETE", EVENTS)
        assert {driver.name: list(driver.prepared) for driver in self.all if driver.prepared} == {}
        assert "Traceback" not in self._node.log


@pytest.fixture
async def drivers(node: ClaimNode) -> AsyncIterator[Drivers]:
    async with AsyncExitStack() as stack:
        drivers = Drivers(node, stack)
        yield drivers
        await drivers.clean_up()


@pytest.fixture
async def gpu(drivers: Drivers) -> FakeDraDriver:
    """A driver that can be called."""
    return await drivers.start("gpu")


@pytest.fixture
async def nic(drivers: Drivers) -> FakeDraDriver:
    """Another driver."""
    return await drivers.start("nic")
