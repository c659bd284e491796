"""The examples of docs/cluster.md run, one after the other. Programs that keep running are stopped at the end."""

import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from devlet.kit.processes import line, process
from tests.support.peers.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs" / "cluster.md").read_text()
BLOCKS = [
    re.findall(r"^\$ (.*)$", block, re.MULTILINE) for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
]


@pytest.fixture(scope="module")
async def cluster(peers: "Peers") -> AsyncIterator[ControlPlane]:
    peers.need("etcd", "kubectl", "kube-apiserver")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with control_plane(peers.binaries, path, fsync=False) as running:
        yield running
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def folder(peers: "Peers") -> Iterator[Path]:
    """Return a directory like the reader's, with `deploy`, and with the programs on the PATH."""
    path = Path(tempfile.mkdtemp(prefix="dv"))
    (path / "deploy").symlink_to(PROJECT / "deploy")
    (path / "bin").mkdir()
    (path / "bin" / "kubectl").symlink_to(peers.binaries / "kubectl")
    (path / "bin" / "devlet").write_text(f'#!/bin/sh\nexec {sys.executable} -m devlet "$@"\n')
    (path / "bin" / "devlet").chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
async def test_the_examples_run(cluster: ControlPlane, folder: Path, root: Path, number: int) -> None:
    environment = {
        "PATH": f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "KUBECONFIG": str(cluster.kubeconfig),
        "PYTHONPATH": str(PROJECT / "src"),
    }
    logs: list[Path] = []
    async with AsyncExitStack() as programs:
        for index, text in enumerate(BLOCKS[number]):
            command = ["bash", "-euo", "pipefail", "-c", text.replace("/tmp/", f"{root}/")]
            if re.match(r"devlet (up|control) ", text):
                command[-1] = f"exec {command[-1]}"
                logs.append(root / f"{index}.log")
                ready = line(r"devlet( control)? is ready: ")
                program = process(command, log=logs[-1], ready=ready, env=environment, cwd=folder)
                await programs.enter_async_context(program)
            else:
                done = await anyio.run_process(command, env=environment, cwd=folder, check=False)
                assert done.returncode == 0, f"{text}: {done.stderr.decode()}"
        for log in logs:
            assert "forbidden" not in log.read_text().lower()
