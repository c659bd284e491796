"""Every program that `make peers` builds runs and is the version it should be."""

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.kit.processes import line, process
from devlet.testing.embedded import embedded_api
from tests.support.free_ports import free_ports
from tests.support.peers.health import answers

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers]


def output(argv: list[str | Path]) -> str:
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=120, env={"HOME": "/nonexistent"})
    assert answer.returncode == 0, answer.stderr
    return answer.stdout + answer.stderr


def test_every_program_is_linked_from_the_version_its_table_names(peers: "Peers", peer: str) -> None:
    peers.need(peer)
    module, _ = peers.programs[peer]
    assert peers.linked_version(peer) == module.version


def test_every_program_with_flags_runs_and_prints_its_version_or_them(peers: "Peers", peer_with_flags: str) -> None:
    peers.need(peer_with_flags)
    module, program = peers.programs[peer_with_flags]
    if program.version_args:
        assert module.version.removeprefix("v") in output([peers.binaries / program.name, *program.version_args])
    else:
        assert "--node-name" in output([peers.binaries / program.name, *program.help_args])


@pytest.mark.anyio
async def test_the_sample_device_plugin_which_has_no_flags_runs(peers: "Peers", root: Path) -> None:
    peers.need("sample-device-plugin")
    command, here = [peers.binaries / "sample-device-plugin"], {"PLUGIN_SOCK_DIR": str(root)}
    ready = line("Starting device plugin server")
    async with process(command, log=root / "log", env=here, ready=ready, grace=0.1) as plugin:
        assert plugin.returncode is None


@pytest.mark.anyio
async def test_the_etcd_benchmark_counts_what_it_did(peers: "Peers", root: Path) -> None:
    peers.need("etcd", "bench-etcd")
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    flags = [f"--data-dir={root / 'etcd'}", f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
    flags += [
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]
    ready = answers(f"{client}/readyz")
    async with process([peers.binaries / "etcd", *flags], log=root / "log", ready=ready):

        def bench(op: str) -> dict[str, Any]:
            sizes = ["--count=200", "--writers=4", "--value-size=100", "--watchers=3"]
            result: dict[str, Any] = json.loads(
                output([peers.binaries / "bench-etcd", f"--endpoint={client}", f"--op={op}", *sizes])
            )
            return result

        created, listed, watched = bench("create"), bench("list"), bench("watch")
    assert (created["op"], created["count"], created["writers"]) == ("create", 200, 4)
    assert created["per_second"] == pytest.approx(200 / created["seconds"])
    assert listed["per_second"] == pytest.approx(200 / listed["seconds"])
    assert (watched["events"], watched["writers"]) == (600, 1)


def test_the_etcd_benchmark_refuses_what_is_out_of_bounds(peers: "Peers") -> None:
    peers.need("bench-etcd")
    answer = subprocess.run([peers.binaries / "bench-etcd", "--writers=0"], capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stderr) == (2, "bench-etcd: --writers is 0, expected 1 to 1024\n")


def bodies_in(path: Path, *bodies: bytes) -> Path:
    path.write_bytes(b"".join(len(body).to_bytes(4) + body for body in bodies))
    return path


def config_map(name: str) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).encode()


@pytest.mark.anyio
async def test_the_api_benchmark_counts_what_it_did(peers: "Peers", root: Path) -> None:
    peers.need("bench-api")
    (root / "d").mkdir()
    async with embedded_api(root / "d") as api:
        (root / "token").write_text(api.token)
        path = "/api/v1/namespaces/default/configmaps"
        where = [f"--server={api.endpoint}", f"--ca={api.ca_file}", f"--token-file={root / 'token'}", f"--path={path}"]

        async def bench(op: str, *flags: str) -> dict[str, Any]:
            argv = [str(peers.binaries / "bench-api"), f"--op={op}", *where, *flags]
            result: dict[str, Any] = json.loads((await anyio.run_process(argv)).stdout)
            return result

        first = bodies_in(root / "first", *(config_map(f"a-{i}") for i in range(20)))
        second = bodies_in(root / "second", *(config_map(f"b-{i}") for i in range(20)))
        created = await bench("create", f"--bodies={first}", "--writers=4", "--warmup=5")
        watched = await bench("watch", f"--bodies={second}", "--watchers=3")
        listed = await bench("list", "--repeat=2")
    assert (created["count"], created["writers"]) == (15, 4)
    assert created["per_second"] == pytest.approx(15 / created["seconds"])
    assert (watched["events"], watched["writers"], watched["watchers"]) == (60, 1, 3)
    assert len(listed["each"]) == 2 and listed["bytes"] > 40 * len(config_map("a-0"))


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--writers=0"], "--writers is 0, expected 1 to 1024"),
        (["--op=delete"], '--op is "delete", expected create, list or watch'),
        (["--op=list", "--server=https://x", "--ca=x", "--token-file=x"], "--path is missing"),
    ],
)
def test_the_api_benchmark_refuses_what_is_out_of_bounds(peers: "Peers", flags: list[str], problem: str) -> None:
    peers.need("bench-api")
    answer = subprocess.run([peers.binaries / "bench-api", *flags], capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stderr) == (2, f"bench-api: {problem}\n")
