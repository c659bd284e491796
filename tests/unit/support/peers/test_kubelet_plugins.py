"""With a small script in the place of the program, which shows what it was given. The real one is in tests/peers."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from devlet.errors import DevletError, InvalidInput
from devlet.runtime import kubelet_paths
from tests.support.peers.kubelet_plugins import DIRECTORIES, ContainerOptions, KubeletPlugins, kubelet_plugins

pytestmark = pytest.mark.anyio

# Writes down its flags and commands, and answers as the real one would.
SCRIPT = f"""#!{sys.executable}
import json, socket, sys
flags = dict(flag.split("=", 1) for flag in sys.argv[2:])
print(json.dumps(sys.argv[1:]), flush=True)
answers = {{
    "capacity": {{"example.com/led": [2, 1]}},
    "driver": True,
    "start": {{"main": {{"env": {{"A": "1"}}, "annotations": {{}}, "mounts": None, "cdi": ["v/c=d"]}}}},
    "health": {{"main": None}},
}}
listener = socket.socket(socket.AF_UNIX)
listener.bind(flags["--control"])
listener.listen()
while True:
    connection = listener.accept()[0]
    command = json.loads(connection.makefile().readline())
    print(json.dumps(command), flush=True)
    error = "no" if command.get("pod") == {{"bad": True}} else ""
    answer = {{"value": answers.get(command["do"]), "error": error}}
    connection.sendall(json.dumps(answer).encode() + bytes([10]))
    connection.close()
"""
POD = {"metadata": {"uid": "u"}}


@pytest.fixture
def binaries(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No mount namespace is needed for the script."""
    folder = root / "bin"
    folder.mkdir()
    (folder / "kubelet-plugins").write_text(SCRIPT)
    (folder / "kubelet-plugins").chmod(0o755)
    module = folder / "as_it_is.py"
    module.write_text("import os, sys; os.execv(sys.argv[2], sys.argv[2:])")
    monkeypatch.setattr(kubelet_paths, "__name__", "as_it_is")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
async def kubelet(binaries: Path, root: Path) -> AsyncIterator[KubeletPlugins]:
    async with kubelet_plugins(binaries, root, kubeconfig=Path("/k"), node_name="n2") as running:
        yield running


def noted(kubelet: KubeletPlugins) -> list[Any]:
    return [json.loads(line) for line in kubelet.process.log.read_text().splitlines()]


async def test_the_program_gets_the_paths_of_everything(kubelet: KubeletPlugins, root: Path) -> None:
    flags, *_ = noted(kubelet)
    control = f"--control={root}/kubelet.control"
    assert flags == ["node", f"--root={root}", "--node-name=n2", control, "--kubeconfig=/k"]
    assert all((root / name).is_dir() for name in DIRECTORIES)


async def test_without_a_kubeconfig_there_are_no_claims(binaries: Path, root: Path) -> None:
    async with kubelet_plugins(binaries, root) as kubelet:
        assert not any("kubeconfig" in flag for flag in noted(kubelet)[0])


async def test_each_command_is_one_line(kubelet: KubeletPlugins) -> None:
    await kubelet.admit(POD)
    await kubelet.prepare(POD)
    await kubelet.unprepare(POD)
    await kubelet.forget(POD)
    commands = [line for line in noted(kubelet)[1:] if line["do"] != "capacity"]
    assert commands == [{"do": name, "pod": POD} for name in ("admit", "prepare", "unprepare", "forget")]


async def test_answers_have_types(kubelet: KubeletPlugins) -> None:
    assert await kubelet.capacity() == {"example.com/led": (2, 1)}
    assert await kubelet.has_driver("led.example.com") is True
    assert await kubelet.start(POD) == {"main": ContainerOptions({"A": "1"}, {}, cdi=["v/c=d"])}
    assert await kubelet.health(POD) == {"main": None}


async def test_the_kubelets_error_is_said(kubelet: KubeletPlugins) -> None:
    with pytest.raises(InvalidInput, match="kubelet-plugins: prepare: no"):
        await kubelet.prepare({"bad": True})


async def test_a_program_that_is_not_built_is_an_error(root: Path) -> None:
    with pytest.raises(DevletError):
        async with kubelet_plugins(root / "none", root):
            pass
