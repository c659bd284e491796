"""With a fake driver under the name of a real one. The real ones are in tests/peers."""

import json
from pathlib import Path

import pytest

from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import NODE
from tests.support.claim_node import SLICES
from tests.support.cluster_contract.specimens import resource_slice
from tests.support.peers.peer_node import EXAMPLE, TEST, PeerNode, device

pytestmark = [pytest.mark.anyio, pytest.mark.long]


def test_a_device_is_in_the_pool_of_the_node() -> None:
    assert (device(TEST)["pool"], device(TEST)["device"], device(EXAMPLE)["device"]) == (NODE, "device-00", "gpu-0")
    assert device(TEST, "x", "r", share="s").items() >= {"device": "x", "request": "r", "shareID": "s"}.items()


async def test_pods_run_and_leave_nothing(root: Path) -> None:
    async with PeerNode(root, root) as node, FakeDraDriver(root, TEST) as driver:
        await node.until_up(TEST)
        uid = await node.run("train", device(TEST))
        assert list(driver.prepared) == [uid]
        assert len(node.specs()) == 1
        await node.leave_nothing()
        assert (await node.pods(), node.specs(), dict(driver.prepared)) == ({}, set(), {})


async def test_a_spec_that_is_left_is_noticed(root: Path) -> None:
    async with PeerNode(root, root) as node:
        (root / "cdi").mkdir(exist_ok=True)
        (root / "cdi" / "x_common.yaml").touch()
        (root / "cdi" / "left.json").touch()
        (root / "cdi" / "spec.123.tmp").touch()  # of a driver that was killed while it wrote
        assert node.specs() == {"left.json"}
        await node.leave_nothing(specs=["left.json"])
        with pytest.raises(AssertionError):
            await node.leave_nothing()


async def test_slices_are_distinguished_by_driver(root: Path) -> None:
    async with PeerNode(root, root) as node:
        for name, driver in (("a", TEST), ("b", EXAMPLE)):
            await node.call("POST", SLICES, resource_slice(name, driver=driver, node_name=NODE))
        made = (await node.slices())["a"]["metadata"]
        assert await node.until_published(TEST) == {"a": (made["uid"], made["resourceVersion"])}


def test_the_example_drivers_own_file_says_what_it_has_prepared(root: Path) -> None:
    node = PeerNode(root, root)
    assert node.example_claims() == []
    file = root / "plugins" / EXAMPLE / "checkpoint.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"kind": "Checkpoint", "preparedClaims": [{"uid": "u1"}]}))
    assert node.example_claims() == ["u1"]
