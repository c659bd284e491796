"""The DRA drivers of one test on a node that many tests use: afterwards nothing of it is left.

    async with node_drivers(node) as drivers:
        gpu = await drivers.start("gpu")          # gpu.example.com
        gpu.fail(PREPARE)
        await node.run_pod("train", gpu.name)

At the end of the block drivers recover, all pods and claims are deleted, and the node and its drivers must have nothing
left. That is more than tidiness: whatever a test has done, with good drivers it can be undone.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from devlet.errors import NotFound
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import EVENTS, PODS
from tests.support.claim_node import CLAIMS, SLICES, ClaimNode

__all__ = ["NodeDrivers", "node_drivers"]


class NodeDrivers:
    """Made by `node_drivers`. Options are those of `FakeDraDriver`. Drivers answer with what was allocated."""

    def __init__(self, node: ClaimNode, stack: AsyncExitStack, keep: Collection[str] = ()) -> None:
        self.all: list[FakeDraDriver] = []
        self._node = node
        self._stack = stack
        self._keep = frozenset(keep)

    async def add(self, name: str, **options: Any) -> FakeDraDriver:
        """`NAME.example.com`, which is not started before it is told to."""
        driver = FakeDraDriver(self._node.root, f"{name}.example.com", autostart=False, **options)
        driver.handler = self._node.allocated(driver.name)
        self.all.append(await self._stack.enter_async_context(driver))
        return driver

    async def start(self, name: str, **options: Any) -> FakeDraDriver:
        """The same, and it can be called."""
        driver = await self.add(name, **options)
        await driver.start()
        await driver.until_registered()
        await self._node.until_connected(driver)
        return driver

    async def clean_up(self) -> None:
        for driver in self.all:
            driver.recover()
            await driver.start()
        pods = await self._delete(PODS)
        await self._delete(CLAIMS)
        await self._delete(SLICES)
        await self._node.until_gone(*pods)
        await self._node.until_forgotten(*(self._node.claim_checkpoint().keys() - self._keep))
        await self._node.call("DELETE", EVENTS)
        kept = {driver.name: list(driver.prepared) for driver in self.all if driver.prepared}
        assert not kept, f"still prepared: {kept}"
        assert "Traceback" not in self._node.log
        await self._leave()

    async def _delete(self, path: str) -> set[str]:
        """The names of what was there."""
        names = {each["metadata"]["name"] for each in await self._node.items(path)} - self._keep
        for name in names:
            try:
                await self._node.call("DELETE", f"{path}/{name}")
            except NotFound:  # it has gone by itself
                continue
        return names

    async def _leave(self) -> None:
        """Until the node has let go: its connection would come to whoever listens there next."""
        for driver in self.all:
            await driver.stop()
        await self._node.until_missing(*self.all)


@asynccontextmanager
async def node_drivers(node: ClaimNode, keep: Collection[str] = ()) -> AsyncIterator[NodeDrivers]:
    """`keep` are the names of pods and claims that stay, and are none of this test."""
    async with AsyncExitStack() as stack:
        drivers = NodeDrivers(node, stack, keep)
        yield drivers
        await drivers.clean_up()
