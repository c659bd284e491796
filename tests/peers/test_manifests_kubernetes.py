"""The same manifests on a real Kubernetes with a devlet node: scheduled by kube-scheduler and by devlet, prepared by
devlet with unmodified drivers, also when devlet and the API server are killed and restarted in between."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from devlet.testing.control_plane import ControlPlane
from devlet.testing.manifests import manifest, manifests, trial
from devlet.testing.manifests_control import kubernetes_environment
from devlet.testing.manifests_environment import Control, Environment

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("peers-manifests-kubernetes"),
]

FOLDER = Path(__file__).parent / "manifests"
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PATHS = manifests(FOLDER)
POINTS = ("applied", "reached", "deleted")
World = tuple[Environment, ControlPlane]


@pytest.fixture(scope="module", params=["reference", "devlet"])
async def world(peers: "Peers", request: pytest.FixtureRequest) -> AsyncIterator[World]:
    peers.need("etcd", "kube-apiserver", "kubectl", "kube-scheduler", "kube-controller-manager")
    peers.need("dra-example-kubeletplugin", "generic-device-plugin")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    control = cast("Control", request.param)
    async with kubernetes_environment(
        peers.binaries, root, FOLDER / "classes.yaml", DEPLOY, control=control
    ) as running:
        yield running
    shutil.rmtree(root)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
async def test_a_manifest_has_its_documented_outcome_and_leaves_nothing(world: World, path: Path) -> None:
    await trial(manifest(path), world[0])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
async def test_the_outcome_is_the_same_when_devlet_and_the_api_server_are_killed_in_between(
    world: World, path: Path
) -> None:
    """devlet at each point; the API server at one of them, a different one for each manifest."""
    environment, plane = world
    turn = POINTS[PATHS.index(path) % len(POINTS)]
    killed: list[str] = []

    async def disturb(point: str) -> None:
        await environment.node.kill()
        if point == turn and not killed:
            killed.append(point)
            await plane.restart("kube-apiserver")
        await environment.node.start()

    await trial(manifest(path), environment, disturb)
    assert killed
