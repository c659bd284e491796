"""The same manifests on a real Kubernetes with a devlet node: scheduled by kube-scheduler and by devlet, prepared by
devlet with unmodified drivers, also when devlet and the API server are killed and restarted in between."""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from devlet.testing.waiting import until
from tests.support.manifests.control import kubernetes_environment
from tests.support.manifests.environment import Control, Environment
from tests.support.manifests.trial import manifest, manifests, trial
from tests.support.peers.control_plane import ControlPlane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
    pytest.mark.timeout(400),
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
async def test_the_outcome_is_the_same_when_devlet_or_the_api_server_is_killed_in_between(
    world: World, path: Path
) -> None:
    """One of them for each manifest, at one of the points."""
    environment, plane = world
    tried = manifest(path)
    who, when = turn(PATHS.index(path), environment.control)
    if any(stage.passing for stage in tried.stages):
        when = "reached"  # time goes on while something is away
    killed: list[str] = []
    before = await watches(plane)

    async def disturb(point: str) -> None:
        if point != when or killed:
            return
        killed.append(who)
        if who == "devlet":
            await environment.node.kill()
            await environment.node.start()
        else:
            await plane.restart("kube-apiserver")

    await trial(tried, environment, disturb)
    assert killed == [who]
    if (who, environment.control) == ("kube-apiserver", "reference"):  # it schedules by what it knew, until it watches
        assert before["devicetaintrules"]
        await until(
            partial(watches, plane), lambda found: all(found[each] >= before[each] for each in before), within=120
        )


async def watches(plane: ControlPlane) -> Counter[str]:
    """How many follow what kube-scheduler looks at, by resource."""
    answer = await plane.kubectl("get", "--raw", "/metrics")
    rows = re.findall(
        r'^apiserver_longrunning_requests\{.*resource="(\w+)".*verb="WATCH".*\} (\d+)$', answer.stdout, re.M
    )
    counts: Counter[str] = Counter()
    for resource, number in rows:
        if resource in ("devicetaintrules", "resourceslices", "deviceclasses", "nodes"):
            counts[resource] += int(number)
    return counts


def turn(number: int, control: Control) -> tuple[str, str]:
    """Who is killed, and at which point. With the reference the API server is killed only once at each: its
    clients wait longer after every time, up to a minute."""
    every = 2 if control == "devlet" else 7
    return ("devlet" if number % every else "kube-apiserver"), POINTS[number % len(POINTS)]


@pytest.mark.parametrize("control", ["reference", "devlet"])
def test_both_are_killed_at_every_point(control: Control) -> None:
    turns = {turn(number, control) for number in range(len(PATHS))}
    assert turns == {(who, point) for who in ("devlet", "kube-apiserver") for point in POINTS}
