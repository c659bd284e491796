"""What a running node does when something below its root is removed, or replaced by something else."""

import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.errors import Unavailable
from devlet.kit.grpc_calls import answered
from devlet.testing import warm_start
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import PODS, NodeProcess, pod
from devlet.testing.waiting import DEADLINE, deadline, until
from devlet.wire.podresources_v1 import api_pb2 as v1
from tests.support.claim_node import CLAIMS, ClaimNode, claim_pod, given

pytestmark = pytest.mark.anyio
GPU = "vendor.com/gpu"
LONG = pytest.mark.long
SOCKETS = ("device-plugins/kubelet.sock", "pod-resources/kubelet.sock", "devlet.sock")
DIRECTORIES = ("device-plugins", "plugins_registry", "plugins", "pod-resources", "cdi", "pki", "in-cluster")


@pytest.fixture
async def node(root: Path) -> AsyncIterator[ClaimNode]:
    async with ClaimNode(root) as node:
        yield node


@pytest.fixture(scope="module")
async def shared_node() -> AsyncIterator[ClaimNode]:
    """One node for the tests that leave it as it was."""
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with ClaimNode(root) as node:
        yield node
    shutil.rmtree(root, ignore_errors=True)


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def snapshot(directory: Path) -> dict[str, tuple[int, bytes]]:
    """The mode and content of each file below a directory, and of each directory."""
    paths = [directory, *directory.rglob("*")]
    return {str(each): (each.stat().st_mode, each.read_bytes() if each.is_file() else b"") for each in paths}


def repairs(node: NodeProcess, path: Path) -> list[str]:
    """The warnings about the path."""
    lines = [line for line in node.log.splitlines() if line.startswith("W")]
    return [line.split('"')[1] for line in lines if line.endswith(f'path="{path}"')]


@asynccontextmanager
async def repaired(node: NodeProcess, path: Path, line: str) -> AsyncIterator[None]:
    """What the block does to the path is repaired, with this one warning."""
    before = len(repairs(node, path))
    yield

    async def found() -> list[str]:
        return repairs(node, path)[before:]

    assert await until(found) == [line]
    assert await until(partial(code, node), lambda found: found == 200)


async def code(node: NodeProcess, path: str = "/healthz") -> int:
    """Of the answer; 0 if there is none."""
    try:
        return (await node.read(path))[0]
    except Unavailable:
        return 0


async def listed(node: NodeProcess) -> list[str]:
    """The pods that PodResources tells of."""
    async with grpc.aio.insecure_channel(f"unix:{node.root}/pod-resources/kubelet.sock") as channel:
        ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/v1.PodResourcesLister/List")
        blob = await answered(ask(b"", timeout=DEADLINE))
    return [each.name for each in v1.ListPodResourcesResponse.FromString(blob).pod_resources]


def get_pods(root: Path) -> str:
    command = [sys.executable, "-m", "devlet", "get", "pods", "-o", "name", "--root", str(root)]
    return warm_start.run(command).stdout


async def works(node: ClaimNode) -> None:
    """Everything that a node is for: a plugin and a driver register, and pods get their devices. Nothing is left."""
    async with FakeDevicePlugin(node.plugins, GPU, 1) as plugin, FakeDraDriver(node.root, "gpu.example.com") as driver:
        await plugin.register()
        await node.until_healthy(GPU, 1)
        await node.until_connected(driver)
        await node.create(pod("plugin", {GPU: 1}))
        await node.add_claim("claim", given(driver.name))
        await node.add_pod(claim_pod("driver", "claim"))
        for name in ("plugin", "driver"):
            await node.until_phase(name, "Running")
        assert await listed(node) == ["driver", "plugin"]
        assert await anyio.to_thread.run_sync(get_pods, node.root) == "pod/driver\npod/plugin\n"
        await node.delete("plugin", "driver")
        await node.call("DELETE", f"{CLAIMS}/claim")
        await node.until_forgotten("claim")
    await node.until_missing(driver)


@pytest.mark.parametrize("name", SOCKETS)
async def test_a_removed_socket_is_served_again_with_one_warning(shared_node: ClaimNode, name: str) -> None:
    node = shared_node
    async with repaired(node, node.root / name, "removed socket is served again"):
        remove(node.root / name)
    assert (node.root / name).stat().st_mode & 0o777 == 0o600
    await works(node)


@pytest.mark.parametrize("name", [*DIRECTORIES[:2], *(pytest.param(n, marks=LONG) for n in DIRECTORIES[2:])])
async def test_a_removed_directory_is_there_again_with_what_devlet_had_in_it(node: ClaimNode, name: str) -> None:
    before = snapshot(node.root / name)
    async with repaired(node, node.root / name, "removed directory created again"):
        remove(node.root / name)
    await until(partial(anyio.to_thread.run_sync, _try_snapshot, node.root / name), lambda found: found == before)
    await works(node)


def _try_snapshot(directory: Path) -> dict[str, tuple[int, bytes]]:
    try:
        return snapshot(directory)
    except OSError:
        return {}


@pytest.mark.parametrize("name", ["device-plugins", *(pytest.param(n, marks=LONG) for n in DIRECTORIES[1:4])])
async def test_a_directory_that_was_moved_away_or_replaced_is_used_again(shared_node: ClaimNode, name: str) -> None:
    node, path = shared_node, shared_node.root / name
    path.rename(node.root / "away")
    path.mkdir()  # by a plugin, for example
    await works_soon(node)
    remove(node.root / "away")


async def works_soon(node: ClaimNode) -> None:
    """There is no warning to wait for if a directory is only replaced."""
    for name in SOCKETS:
        await until(partial(anyio.to_thread.run_sync, (node.root / name).is_socket))
    await works(node)


async def test_a_file_that_only_a_start_writes_is_written_again(shared_node: ClaimNode) -> None:
    node = shared_node
    for name in ("kubeconfig", "runtime_none_state"):
        path = node.root / name
        before = path.read_bytes()
        async with repaired(node, path, "removed file written again"):
            remove(path)
        assert path.read_bytes() == before


async def test_without_its_lock_file_a_root_still_has_one_daemon(shared_node: ClaimNode) -> None:
    node = shared_node
    async with repaired(node, node.root / "devlet.lock", "removed lock file created again"):
        remove(node.root / "devlet.lock")
    command = [sys.executable, "-m", "devlet", "up", "--root", str(node.root)]
    second = await anyio.run_process(command, check=False)
    assert f"is in use by process {node.pid}" in second.stderr.decode()


async def test_plugins_that_watch_for_the_socket_register_again_and_pods_keep_their_devices(node: ClaimNode) -> None:
    async with FakeDevicePlugin(node.plugins, GPU, 2, follow=True) as plugin:
        await node.until_healthy(GPU, 2)
        await node.create(pod("train", {GPU: 1}))
        before = await node.until_phase("train", "Running")
        held = await node.held()
        remove(node.plugins / "kubelet.sock")

        async def registrations() -> int:
            return plugin.registrations

        await until(registrations, lambda count: count >= 2)
        await node.until_healthy(GPU, 2)
        assert await node.held() == held
        assert (await node.until_phase("train", "Running"))["metadata"]["uid"] == before["metadata"]["uid"]


async def test_plugins_whose_directory_was_removed_stay_connected(node: ClaimNode) -> None:
    async with FakeDevicePlugin(node.plugins, GPU, 2, follow=True):
        await node.until_healthy(GPU, 2)
        async with repaired(node, node.plugins, "removed directory created again"):
            remove(node.plugins)
        await node.create(pod("train", {GPU: 2}))
        await node.until_phase("train", "Running")
        assert len((await node.held())["train"][GPU]) == 2


async def test_a_removed_checkpoint_is_written_again_and_says_the_same_after_kill_9(node: ClaimNode) -> None:
    async with (
        FakeDevicePlugin(node.plugins, GPU, 1, follow=True),
        FakeDraDriver(node.root, "gpu.example.com") as driver,
    ):
        await node.until_healthy(GPU, 1)
        await node.until_connected(driver)
        await node.create(pod("plugin", {GPU: 1}))
        await node.add_claim("claim", given(driver.name))
        await node.add_pod(claim_pod("driver", "claim"))
        for name in ("plugin", "driver"):
            await node.until_phase(name, "Running")
        for path in (node.checkpoint_path, node.root / "dra_manager_state"):
            before = path.read_bytes()
            async with repaired(node, path, "removed file written again"):
                remove(path)
            assert path.read_bytes() == before
        held = await node.held()
        await node.kill()
        await node.start()
        assert await node.held() == held
        assert list(node.claim_checkpoint()) == ["claim"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("device-plugins/kubelet.sock", "link"),
        pytest.param("device-plugins/kubelet.sock", "file", marks=LONG),
        pytest.param("device-plugins/kubelet.sock", "directory", marks=LONG),
        ("plugins_registry", "link"),
        pytest.param("plugins_registry", "file", marks=LONG),
    ],
)
async def test_what_takes_the_place_of_a_removed_one_is_reported_and_never_touched(
    shared_node: ClaimNode, name: str, what: str
) -> None:
    node = shared_node
    path, target = node.root / name, node.root / "target"
    reported = node.log.count('"cannot be repaired"')
    if name == "plugins_registry":
        target.mkdir()
    new = node.root / "new"
    match what:
        case "link":
            new.symlink_to(target)
        case "directory":
            new.mkdir()
        case _:
            new.touch()
    remove(path)
    new.rename(path)

    async def reason() -> str:
        return (await node.read("/readyz/root"))[1]

    assert str(path) in await until(reason, lambda text: text != "ok")
    assert (await code(node), await code(node, "/readyz"), await code(node, "/livez")) == (500, 500, 200)
    assert path.is_symlink() == (what == "link")
    assert snapshot(target).keys() == {str(target)} if target.exists() else name != "plugins_registry"
    assert node.log.count('"cannot be repaired"') == reported + 1
    remove(path)
    await until(partial(code, node), lambda found: found == 200)
    await works(node)
    if target.exists():
        remove(target)


async def test_a_root_that_was_removed_fails_the_health_and_no_other_one_is_filled(root: Path) -> None:
    (root / "r").mkdir(0o700)
    async with ClaimNode(root / "r") as node:
        async with await anyio.connect_unix(node.root / "devlet.sock") as connection:
            node.root.rename(root / "away")

            async def health() -> bytes:
                await connection.send(b"GET /healthz/root HTTP/1.1\r\nHost: devlet\r\n\r\n")
                return await connection.receive()

            assert b"was removed or replaced while devlet runs: restart devlet" in await until(
                health, lambda answer: b"200 OK" not in answer
            )
            node.root.mkdir()
            assert b"was removed or replaced" in await health()
            node.root.rmdir()
            (root / "away").rename(node.root)
            await until(health, lambda answer: b"200 OK" in answer)


@pytest.mark.parametrize("suffix", ["", "-wal", pytest.param("-shm", marks=LONG)])
async def test_without_the_database_nothing_is_acknowledged_and_health_says_what_to_do(
    node: ClaimNode, suffix: str
) -> None:
    path = node.root / f"cluster.db{suffix}"
    path.rename(node.root / "away")
    with pytest.raises(
        Unavailable, match=f"{path} was removed or replaced while devlet runs, so nothing can be written"
    ):
        await node.create(pod("lost", {}))
    assert [await code(node, each) for each in ("/healthz", "/readyz", "/livez")] == [500, 500, 200]
    assert (await node.read(PODS))[0] == 200
    assert ("move it back" if suffix == "" else "Restart devlet") in (await node.read("/healthz/store"))[1]
    (node.root / "away").rename(path)
    await until(partial(code, node), lambda found: found == 200)
    await node.create(pod("kept", {}))
    await node.until_phase("kept", "Running")


async def test_without_the_write_ahead_log_a_restart_loses_nothing(node: ClaimNode) -> None:
    await node.create(pod("kept", {}))
    for suffix in ("-wal", "-shm", "-mark"):
        remove(node.root / f"cluster.db{suffix}")
    await until(partial(code, node), lambda found: found == 500)
    await node.stop()
    await node.start()
    assert (await node.until_phase("kept", "Running"))["metadata"]["name"] == "kept"
    assert await code(node) == 200


async def test_a_removed_high_water_mark_is_written_again(node: ClaimNode) -> None:
    path = node.root / "cluster.db-mark"
    async with repaired(node, path, "removed file written again"):
        remove(path)
        await node.create(pod("any", {}))
    await node.kill()
    await node.start()
    await node.until_phase("any", "Running")
    assert "high-water mark is damaged" not in node.log


async def test_what_is_removed_while_it_stops_does_not_hold_it_up(root: Path) -> None:
    async with NodeProcess(root) as node:
        for name in SOCKETS:
            remove(root / name)
        with deadline():
            await node.stop()
    assert "Traceback" not in (root / "up.log").read_text()
    assert signal.SIGKILL.name not in (root / "up.log").read_text()
