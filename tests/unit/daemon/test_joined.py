"""A node that joins the embedded cluster of another devlet, in the same process; with a real cluster: tests/peers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import anyio
import pytest

from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.kubeconfig import connection
from devlet.daemon.config import Config
from devlet.daemon.joined import joined
from devlet.daemon.main import embedded, parts_of
from devlet.errors import InvalidInput
from devlet.objects.kinds import NODES, PODS
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def first(root: Path) -> Path:
    (root / "a").mkdir(mode=0o700)
    return root / "a"


@pytest.fixture
def second(root: Path) -> Path:
    (root / "b").mkdir(mode=0o700)
    return root / "b"


@pytest.fixture
async def cluster(first: Path, anyio_backend: str) -> AsyncIterator[RemoteCluster]:
    async with (
        embedded(Config(first, "a", controllers=frozenset())),
        connected(connection([first / "kubeconfig"])) as cluster,
    ):
        yield cluster


def config(root: Path, first: Path) -> Config:
    return Config(root, "b", kubeconfig=first / "kubeconfig")


def socket(root: Path) -> aiohttp.ClientSession:
    return aiohttp.ClientSession("http://localhost", connector=aiohttp.UnixConnector(str(root / "devlet.sock")))


async def test_a_second_node_joins_and_runs_the_pods_that_are_for_it(
    cluster: RemoteCluster, first: Path, second: Path
) -> None:
    async with joined(config(second, first)):
        assert [node["metadata"]["name"] for node in (await cluster.list(NODES)).items] == ["a", "b"]
        spec = {"nodeName": "b", "containers": [{"name": "c", "image": "i"}]}
        await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")

        async def phase() -> str:
            return str((await cluster.get(PODS, "p", "default"))["status"]["phase"])

        await until(phase, lambda found: found == "Running")
    assert not (second / "cluster.db").exists()
    assert not (second / "kubeconfig").exists()


async def test_its_socket_is_for_its_owner_and_shows_the_node_and_the_cluster(
    cluster: RemoteCluster, first: Path, second: Path
) -> None:
    async with joined(config(second, first)), socket(second) as session:
        assert (second / "devlet.sock").stat().st_mode & 0o777 == 0o600
        async with FakeDevicePlugin(second / "device-plugins", "vendor.com/gpu", 2, follow=True):

            async def devices() -> list[str]:
                async with session.get("/apis/devlet.dev/v1alpha1/devices") as answer:
                    return [each["metadata"]["name"] for each in (await answer.json())["items"]]

            await until(devices, lambda found: len(found) == 2)
        async with session.get("/api/v1/nodes") as answer:
            assert [each["metadata"]["name"] for each in (await answer.json())["items"]] == ["a", "b"]
        async with session.get("/healthz?verbose") as answer:
            checks = "".join(f"[+]{name} ok\n" for name in ("ping", "root", "device-plugin", "checkpoints"))
            assert await answer.text() == f"{checks}healthz check passed\n"
        async with session.get("/metrics") as answer:
            assert "kubelet_device_plugin_registration_total" in await answer.text()


async def test_a_server_that_is_away_is_waited_for_and_the_socket_answers_meanwhile(
    second: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c"}}
    file = second / "away"
    file.write_text(
        json.dumps({"kind": "Config", "clusters": [cluster], "contexts": [context], "current-context": "c"})
    )

    async def start() -> None:
        async with joined(Config(second, "b", kubeconfig=file)):
            pytest.fail("nobody is there")

    async def waits() -> bool:
        return any(record.message == "waiting for the API server" for record in caplog.records)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        await until(waits)
        async with socket(second) as session:
            for path, code in (("/healthz", 200), ("/readyz", 500)):
                async with session.get(path) as answer:
                    assert answer.status == code
            async with session.get("/api/v1/nodes") as answer:
                assert answer.status == 503
        tasks.cancel_scope.cancel()


async def test_a_root_with_an_embedded_cluster_is_refused(cluster: RemoteCluster, first: Path) -> None:
    with pytest.raises(InvalidInput, match="has an embedded cluster"):
        async with joined(config(first, first)):
            pytest.fail("it may not start")


def test_the_kubeconfig_chooses_the_parts(root: Path) -> None:
    assert parts_of(Config(root, "n")) is embedded
    assert parts_of(Config(root, "n", kubeconfig=root / "k")) is joined


async def test_without_a_kubeconfig_there_is_nothing_to_join(root: Path) -> None:
    with pytest.raises(InvalidInput, match="give --kubeconfig"):
        async with joined(Config(root, "n")):
            pytest.fail("it may not start")
