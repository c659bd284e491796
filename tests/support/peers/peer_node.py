"""A node with unmodified DRA drivers beside it, which can be killed and started again as it can.

async with PeerNode(root, binaries) as node, node.test_driver() as driver:
    await node.run("train", device(TEST))
    await driver.kill()
    await driver.start()
    await node.leave_nothing(driver.running)
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from devlet.kit.processes import RunningProcess
from devlet.objects.documents import Document
from devlet.testing.node_process import EVENTS, NODE, PODS
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.claim_node import CLAIMS, ClaimNode, given
from tests.support.peers.drivers import dra_example_driver, dra_test_driver, hooked_test_driver
from tests.support.peers.hooked_driver import HookedDriver

__all__ = ["EXAMPLE", "TEST", "PeerNode", "device"]

EXAMPLE, TEST = "gpu.example.com", "test-driver.cdi.k8s.io"
FIRST = {EXAMPLE: "gpu-0"}  # the others call theirs device-00


def device(driver: str, name: str = "", request: str = "req", *, share: str = "") -> Document:
    """One device of an allocation, in the pool that drivers have for this node. Without a name it is their first."""
    return given(driver, name or FIRST.get(driver, "device-00"), request, share=share) | {"pool": NODE}


class PeerNode(ClaimNode):
    """`binaries` has the programs that `make peers` builds."""

    def __init__(
        self,
        root: Path,
        binaries: Path,
        configuration: str = "",
        *,
        arguments: Sequence[str] = (),
        control: bool = False,
    ) -> None:
        super().__init__(root, configuration, arguments=arguments, control=control)
        self.kubeconfig = root / "kubeconfig"
        self._drivers = (binaries, root, self.kubeconfig)

    # Drivers. Options are those of `tests.support.peers.drivers`.

    def example_driver(self, **options: Any) -> Restarts[RunningProcess]:
        """It remembers what it has prepared in a file of its own."""
        return Restarts(partial(dra_example_driver, *self._drivers, node_name=NODE, **options))

    def plain_test_driver(self, **options: Any) -> Restarts[RunningProcess]:
        return Restarts(partial(dra_test_driver, *self._drivers, node_name=NODE, **options))

    def test_driver(self, **options: Any) -> Restarts[HookedDriver]:
        """With its hooks. When it is killed it forgets what it has prepared, and leaves its CDI specs behind."""
        return Restarts(partial(hooked_test_driver, *self._drivers, node_name=NODE, **options))

    # Pods

    async def run(self, name: str, *devices: Document) -> str:
        """Have a pod run that has a claim of the same name with these devices. Return the UID of the claim."""
        uid = await self.submit(name, *devices)
        await self.until_phase(name, "Running")
        return uid

    # What is there

    def specs(self) -> set[str]:
        """Return the names of the claims' CDI specs. The example driver has another spec for all of them, and leaves a
        file that no runtime reads, `spec.*.tmp`, if it is killed while it writes."""
        files = (self.root / "cdi").glob("*")
        return {file.name for file in files if file.suffix in (".json", ".yaml") and "_common." not in file.name}

    def example_claims(self) -> list[str]:
        """The UIDs of what the example driver has written down as prepared."""
        file = self.root / "plugins" / EXAMPLE / "checkpoint.json"
        found = json.loads(file.read_text()) if file.exists() else {}
        return [each["uid"] for each in found.get("preparedClaims") or ()]

    async def own_slices(self, driver: str) -> dict[str, tuple[str, str]]:
        """UID and version of each slice, by name."""
        return {
            name: (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
            for name, each in (await self.slices()).items()
            if each["spec"]["driver"] == driver
        }

    async def until_published(self, driver: str) -> dict[str, tuple[str, str]]:
        return await until(partial(self.own_slices, driver))

    async def leave_nothing(self, *drivers: HookedDriver, specs: Sequence[str] = ()) -> None:
        """Delete all pods and claims; then nothing may be prepared, and of CDI specs only those of drivers that were
        killed may be left."""
        for path in (PODS, CLAIMS):
            await self.call("DELETE", path)
        await self.until_gone(*await self.pods())
        await self.until_forgotten(*self.claim_checkpoint())
        await self.call("DELETE", EVENTS)
        for driver in drivers:
            assert await driver.prepared() == []
        assert self.specs() <= set(specs)
        assert "Traceback" not in self.log
