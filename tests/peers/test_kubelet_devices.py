"""Our program around the kubelet's packages does what bench/admission.py and other tests rely on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.kit.processes import RunningProcess, line, process
from devlet.runtime import kubelet_paths
from devlet.state.device_checkpoint import Checkpoint, Encoder, Entry, decode

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

GPU = "example.com/gpu"
FILE = "kubelet_internal_checkpoint"


@pytest.fixture
def program(peers: "Peers") -> Path:
    peers.need("kubelet-devices")
    return peers.binaries / "kubelet-devices"


@pytest.fixture
def folder(root: Path) -> Path:
    path = root / "device-plugins"
    path.mkdir()
    return path


def devices(checkpoint: Checkpoint) -> list[str]:
    return [id for entry in checkpoint.entries or () for ids in (entry.devices or {}).values() for id in ids or ()]


async def bench(program: Path, folder: Path, *flags: str) -> dict[str, Any]:
    namespace = [sys.executable, "-m", kubelet_paths.__name__, str(folder.parent)]
    command = [*namespace, str(program), "bench", f"--directory={folder}", f"--resource={GPU}", *flags]
    answer = await anyio.run_process(command, check=False)
    assert answer.returncode == 0, answer.stderr.decode()
    result: dict[str, Any] = json.loads(answer.stdout)
    return result


async def registrations(plugin: RunningProcess) -> int:
    return (await anyio.Path(plugin.log).read_text()).count(f"registered {GPU}\n")


async def test_the_kubelets_manager_goes_on_from_a_checkpoint_of_devlet(program: Path, folder: Path) -> None:
    """Twice with one plugin, which has to notice the second kubelet."""
    entries = [Entry(f"pod-{n}", "main", GPU, {-1: (f"dev-{n}",)}, b"") for n in range(10)]
    (folder / FILE).write_bytes(Encoder().encode(entries, {GPU: ["dev-0"]}))
    flags = [f"--directory={folder}", f"--resource={GPU}", "--devices=17"]
    async with process([program, "plugin", *flags], log=folder.parent / "log", ready=line("waiting for")) as plugin:
        first = await bench(program, folder, "--pods=4", "--concurrency=3")
        found = decode((folder / FILE).read_bytes())
        second = await bench(program, folder, "--pods=3")
        assert await registrations(plugin) == 2
    assert (first["existing"], first["admitted"], first["failed"]) == (10, 4, 0)
    assert first["rate"] == pytest.approx(4 / first["seconds"])
    assert len(devices(found)) == len(set(devices(found))) == 14
    kept = [entry for entry in found.entries or () if entry.pod.startswith("pod-")]
    assert sorted(kept, key=lambda entry: entry.pod) == entries
    assert (second["existing"], second["checkpoint_bytes"]) == (14, (folder / FILE).stat().st_size)
    assert sorted(devices(decode((folder / FILE).read_bytes()))) == sorted(f"dev-{n}" for n in range(17))


async def test_what_is_prepared_is_what_the_plugin_would_have_answered(program: Path, folder: Path) -> None:
    flags = [f"--directory={folder}", f"--resource={GPU}"]
    async with process([program, "plugin", *flags, "--devices=2"], log=folder.parent / "log", ready=line("waiting")):
        await anyio.run_process([program, "prepare", *flags, "--existing=1"])
        prepared = decode((folder / FILE).read_bytes())
        await bench(program, folder, "--pods=1")
    [entry] = prepared.entries or ()
    assert (entry.pod, entry.devices) == ("existing-0", {-1: ("dev-0",)})
    responses = {e.pod: e.response for e in decode((folder / FILE).read_bytes()).entries or ()}
    assert responses["new-1"] == (entry.response or b"").replace(b"dev-0", b"dev-1").replace(b"DEV_0", b"DEV_1")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["plugin", "--directory=/tmp", f"--resource={GPU}", "--numa=x"], 'plugin: --numa is "x", expected none or'),
        (["plugin", "--directory=/tmp"], "plugin: --resource missing"),
        (
            ["prepare", "--directory=/tmp", f"--resource={GPU}", "--existing=-1"],
            "prepare: --existing is -1, expected 0",
        ),
        (["bench", "--directory=/tmp", f"--resource={GPU}", "--pods=0"], "bench: --pods is 0, expected 1 to 200000"),
        (["bench", "--directory=/tmp", f"--resource={GPU}"], "bench: /tmp is not mounted at /var/lib/kubelet/device"),
        (["pod-resources", "/tmp/s", "get", "ns"], "pod-resources: expected SOCKET list | allocatable | get NAMESPACE"),
        (["checkpoint-read"], "checkpoint-read: expected DIR..."),
    ],
)
def test_what_makes_no_sense_is_refused(program: Path, arguments: list[str], problem: str) -> None:
    answer = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"kubelet-devices: {problem}")


def test_an_unknown_command_gets_the_list_of_commands(program: Path) -> None:
    answer = subprocess.run([program, "read"], capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (2, "usage: kubelet-devices COMMAND")
