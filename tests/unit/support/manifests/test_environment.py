"""What trials notice when it is left behind. Whole trials are in test_trial, and with real drivers in the peers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.testing.node_process import NODE
from tests.support.claim_node import CLAIMS, SLICES
from tests.support.cluster_contract.specimens import claim, named, resource_slice
from tests.support.manifests import environment as manifests_environment
from tests.support.manifests.environment import Environment, driver_claims
from tests.support.peers.peer_node import PeerNode

pytestmark = [pytest.mark.anyio, pytest.mark.long]

DRIVER = "gpu.example.com"


@pytest.fixture
async def world(root: Path) -> AsyncIterator[Environment]:
    async with (
        PeerNode(root, root) as node,
        connected(kubeconfigs.connection([node.kubeconfig])) as cluster,
    ):
        yield Environment("devlet", "embedded", node, cluster, node.kubeconfig, root)


def prepare(root: Path, *uids: str) -> None:
    """As the driver writes it down."""
    folder = root / "plugins" / DRIVER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "checkpoint.json").write_text(json.dumps({"preparedClaims": [{"uid": uid} for uid in uids]}))


def test_a_driver_tells_what_it_has_prepared(tmp_path: Path) -> None:
    assert driver_claims(tmp_path, DRIVER) == []
    prepare(tmp_path, "u-1", "u-2")
    assert driver_claims(tmp_path, DRIVER) == ["u-1", "u-2"]


async def test_whatever_is_left_is_noticed(world: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    node = world.node
    assert await world.left() == []
    await node.call("POST", CLAIMS, claim("own"))
    await node.call("POST", "/api/v1/namespaces", named("more"))
    prepare(node.root, "u-1")
    (node.root / "cdi").mkdir(exist_ok=True)
    (node.root / "cdi" / "left.json").touch()
    assert await world.left() == [
        "resourceclaims.resource.k8s.io own",
        "namespace more",
        "CDI spec left.json",
        f"u-1 in the checkpoint of {DRIVER}",
    ]
    monkeypatch.setattr(manifests_environment, "PATIENCE", 0.2)
    with pytest.raises(AssertionError, match=r"left\.json"):
        await world.until_clean()


async def test_a_node_that_is_away_is_not_clean(world: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests_environment, "PATIENCE", 0.2)
    await world.node.kill()
    with pytest.raises(AssertionError, match="last seen"):
        await world.until_clean()


async def test_devices_are_reported_by_driver(world: Environment) -> None:
    for name, driver in (("one", "a.example.com"), ("two", "b.example.com"), ("three", "b.example.com")):
        await world.node.call("POST", SLICES, resource_slice(name, node_name=NODE, driver=driver))
    assert await world.published() == {"a.example.com": ["d0"], "b.example.com": ["d0", "d0"]}
