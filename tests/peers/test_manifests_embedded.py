"""Each feature of DRA from `kubectl apply` to its documented outcome on the embedded cluster, with unmodified drivers.

The outcomes were found with kube-scheduler and kube-controller-manager; devlet's own control loops must come to the
same."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.support.manifests.control import embedded_environment
from tests.support.manifests.environment import Control, Environment
from tests.support.manifests.trial import manifest, manifests, trial

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

FOLDER = Path(__file__).parent / "manifests"
CONTROLS = ["devlet", "reference"]


@pytest.fixture(scope="module", params=CONTROLS)
async def world(peers: "Peers", request: pytest.FixtureRequest) -> AsyncIterator[Environment]:
    peers.need("kubectl", "kube-scheduler", "kube-controller-manager")
    peers.need("dra-example-kubeletplugin", "generic-device-plugin")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    control = cast("Control", request.param)
    async with embedded_environment(peers.binaries, root, FOLDER / "classes.yaml", control=control) as running:
        yield running
    shutil.rmtree(root)


@pytest.mark.parametrize("path", manifests(FOLDER), ids=lambda path: path.stem)
async def test_a_manifest_has_its_documented_outcome_and_leaves_nothing(world: Environment, path: Path) -> None:
    await trial(manifest(path), world)
