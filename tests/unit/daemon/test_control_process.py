"""On the embedded API of a devlet; with a real API server: tests/peers/test_control.py."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import anyio
import pytest

from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.kubeconfig import connection
from devlet.control.leader_election import Settings
from devlet.daemon.config import Config
from devlet.daemon.control_process import LEASES, ControlConfig, run
from devlet.daemon.controllers import CONTROL
from devlet.daemon.main import embedded
from devlet.errors import InvalidInput
from devlet.objects import kinds
from devlet.testing.waiting import deadline, until
from tests.support.free_ports import free_ports

pytestmark = pytest.mark.anyio

SPACE = "kube-system"


@pytest.fixture
async def cluster(root: Path, anyio_backend: str) -> AsyncIterator[RemoteCluster]:
    async with (
        embedded(Config(root, "n", controllers=frozenset())),
        connected(connection([root / "kubeconfig"])) as cluster,
    ):
        yield cluster


def config(root: Path, **more: object) -> ControlConfig:
    return ControlConfig(root / "kubeconfig", "host", **more)  # type: ignore[arg-type]


def stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


async def holder(cluster: RemoteCluster, name: str) -> str:
    return str((await cluster.get(kinds.LEASES, name, SPACE))["spec"]["holderIdentity"])


def test_every_loop_has_one_lease() -> None:
    assert sorted(name for loops in LEASES.values() for name in loops) == sorted(CONTROL)


async def test_it_leads_says_so_and_gives_the_lease_back(cluster: RemoteCluster, root: Path) -> None:
    said: list[str] = []

    def ready(state: str) -> None:
        said.append(state)
        stop()

    with deadline():
        await run(config(root), ready)
    assert said == ["scheduler leads"]
    assert await holder(cluster, "devlet-scheduler") == ""


async def test_with_all_controllers_there_are_two_leases(cluster: RemoteCluster, root: Path) -> None:
    said: list[str] = []
    holders: list[str] = []

    async def look() -> None:
        async def both() -> list[str]:
            found = (await cluster.list(kinds.LEASES, SPACE)).items
            return [str(each["spec"]["holderIdentity"]).partition("_")[0] for each in found]

        found = await until(both, lambda found: len(found) == 2)
        holders.extend(found)
        stop()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        await run(config(root, controllers=frozenset(CONTROL)), said.append)
    assert said == ["scheduler leads, resourceclaim,device-taint-eviction leads"]
    assert holders == ["host", "host"]


async def test_who_comes_second_waits_and_says_for_whom(cluster: RemoteCluster, root: Path) -> None:
    lease = {"metadata": {"name": "devlet-scheduler"}, "spec": {"holderIdentity": "other", "leaseDurationSeconds": 60}}
    await cluster.create(kinds.LEASES, lease, SPACE)
    said: list[str] = []

    def ready(state: str) -> None:
        said.append(state)
        stop()

    await run(config(root), ready)
    assert said == ["scheduler waits: other leads"]
    assert await holder(cluster, "devlet-scheduler") == "other"


async def test_a_namespace_for_leases_that_does_not_exist_ends_it_with_an_error(
    cluster: RemoteCluster, root: Path
) -> None:
    said: list[str] = []
    with (
        deadline(),
        pytest.RaisesGroup(pytest.RaisesExc(InvalidInput, match="nosuch"), flatten_subgroups=True),
    ):
        await run(config(root, election=Settings(namespace="nosuch")), said.append)
    assert said == []


async def test_without_an_election_there_is_no_lease(cluster: RemoteCluster, root: Path) -> None:
    said: list[str] = []

    def ready(state: str) -> None:
        said.append(state)
        stop()

    await run(config(root, leader_elect=False), ready)
    assert said == ["scheduler runs"]
    assert list((await cluster.list(kinds.LEASES, SPACE)).items) == []


async def test_metrics_show_the_leader(cluster: RemoteCluster, root: Path) -> None:
    [port] = free_ports(1)
    texts: list[str] = []

    async def look() -> None:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            for path in ("/healthz", "/metrics", "/other"):
                async with session.get(path) as answer:
                    texts.append(await answer.text())
        stop()

    async with anyio.create_task_group() as tasks:

        def ready(state: str) -> None:
            tasks.start_soon(look)

        await run(config(root, metrics_address=("127.0.0.1", port)), ready)
    assert texts[0] == "ok"
    assert 'leader_election_master_status{name="devlet-scheduler"} 1' in texts[1]
    assert "404" in texts[2]
