"""`devlet control` on a real API server: one leads, another takes over, and kube-scheduler understands the lease."""

import json
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.kit.processes import RunningProcess, line, process
from devlet.testing.waiting import until
from tests.support.peers.control_plane import ControlPlane, control_plane
from tests.support.peers.kube_programs import kube_scheduler

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

LEASE = "devlet-scheduler"
TIMES = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
]
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


@pytest.fixture(scope="module")
async def cluster(peers: "Peers") -> AsyncIterator[ControlPlane]:
    peers.need("etcd", "kubectl", "kube-apiserver", "kube-scheduler")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with control_plane(peers.binaries, path, fsync=False) as running:
        await apply(running, NODE)
        yield running
    shutil.rmtree(path)


async def apply(cluster: ControlPlane, document: dict[str, Any]) -> None:
    answer = await cluster.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    assert answer.returncode == 0, answer.stderr


def control(
    cluster: ControlPlane, root: Path, name: str, *arguments: str
) -> AbstractAsyncContextManager[RunningProcess]:
    argv = [sys.executable, "-m", "devlet", "control", "--kubeconfig", str(cluster.kubeconfig), "--identity", name]
    ready = line("devlet control is ready: ")
    return process([*argv, *TIMES, *arguments], log=root / f"{name}.log", name=f"control {name}", ready=ready)


async def spec(cluster: ControlPlane) -> dict[str, Any]:
    answer = await cluster.kubectl("get", "lease", LEASE, "-n", "kube-system", "-o", "json", "--ignore-not-found")
    found: dict[str, Any] = json.loads(answer.stdout)["spec"] if answer.stdout else {}
    return found


async def leader(cluster: ControlPlane) -> str:
    return str((await spec(cluster)).get("holderIdentity", "")).partition("_")[0]


async def until_leader(cluster: ControlPlane, name: str) -> None:
    async def read() -> str:
        return await leader(cluster)

    await until(read, lambda found: found == name)


async def until_bound(cluster: ControlPlane, name: str, scheduler: str = "devlet") -> None:
    tolerations = [{"operator": "Exists"}]  # nothing here says that the node is ready
    wanted = {"schedulerName": scheduler, "tolerations": tolerations, "containers": [{"name": "c", "image": "i"}]}
    await apply(cluster, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": wanted})
    answer = await cluster.kubectl("wait", f"pod/{name}", "--for=condition=PodScheduled", "--timeout=60s")
    assert answer.returncode == 0, answer.stderr


async def test_a_leader_that_is_killed_is_followed_by_one_that_waited(cluster: ControlPlane, root: Path) -> None:
    async with control(cluster, root, "one") as one, control(cluster, root, "two"):
        assert "scheduler leads" in (root / "one.log").read_text()
        assert "scheduler waits: one_" in (root / "two.log").read_text()
        await until_bound(cluster, "first")
        before = await spec(cluster)
        one.send_signal(signal.SIGKILL)
        await until_leader(cluster, "two")
        assert (await spec(cluster))["leaseTransitions"] == before["leaseTransitions"] + 1
        await until_bound(cluster, "second")
    assert await leader(cluster) == "", "who stops in good order gives the lease back"


async def test_a_leader_that_was_stopped_for_too_long_finds_another_and_waits(
    cluster: ControlPlane, root: Path
) -> None:
    async with control(cluster, root, "one") as one, control(cluster, root, "two"):
        await until_leader(cluster, "one")
        one.send_signal(signal.SIGSTOP)
        await until_leader(cluster, "two")
        one.send_signal(signal.SIGCONT)

        async def log() -> str:
            return (root / "one.log").read_text()

        await until(log, lambda text: '"lease lost"' in text)
        await until_bound(cluster, "third")
        assert await leader(cluster) == "two"


async def test_leading_survives_a_restart_of_the_api_server(cluster: ControlPlane, root: Path) -> None:
    async with control(cluster, root, "one") as one:
        await until_bound(cluster, "before")
        await cluster.restart("kube-apiserver")
        await until_leader(cluster, "one")
        await until_bound(cluster, "after")
        assert one.returncode is None


@pytest.mark.spec("KA-9.1")
async def test_kube_scheduler_waits_for_our_lease_and_takes_it_when_it_is_given_back(
    cluster: ControlPlane, root: Path, binaries: Path
) -> None:
    flags = ["--leader-elect=true", f"--leader-elect-resource-name={LEASE}", *TIMES]
    async with AsyncExitStack() as theirs:
        async with control(cluster, root, "one"):
            await until_leader(cluster, "one")
            await theirs.enter_async_context(kube_scheduler(binaries, root, cluster.kubeconfig, flags=flags))
            await until_bound(cluster, "ours")
            assert await leader(cluster) == "one"
            before = await spec(cluster)

        async def holder() -> str:
            return str((await spec(cluster))["holderIdentity"])

        await until(holder)
        assert (await spec(cluster))["leaseTransitions"] == before["leaseTransitions"] + 1
        await until_bound(cluster, "theirs", "default-scheduler")


async def test_we_wait_for_a_lease_of_kube_scheduler(cluster: ControlPlane, root: Path, binaries: Path) -> None:
    await cluster.kubectl("delete", "lease", LEASE, "-n", "kube-system")
    flags = ["--leader-elect=true", f"--leader-elect-resource-name={LEASE}", *TIMES]
    async with kube_scheduler(binaries, root, cluster.kubeconfig, flags=flags) as theirs:

        async def holder() -> str:
            return str((await spec(cluster)).get("holderIdentity", ""))

        await until(holder)
        async with control(cluster, root, "one"):
            assert f"scheduler waits: {await holder()} leads" in (root / "one.log").read_text()
            theirs.send_signal(signal.SIGKILL)
            await until_leader(cluster, "one")
            await until_bound(cluster, "taken")
