"""The real Kubernetes programs as fixtures. One control plane per file and worker, on ports of its own.

A program that is not built skips the test, or fails it where they are expected: in CI, or with
DEVLET_PEERS=required."""

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.peers.control_plane import ControlPlane, control_plane

PROJECT = Path(__file__).resolve().parents[2]
BINARIES = PROJECT / ".cache" / "peers" / "bin"


def _builder() -> Any:
    """tools/peers.py, which is a script and not on the path."""
    spec = importlib.util.spec_from_file_location("devlet_tools_peers", PROJECT / "tools" / "peers.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


builder = _builder()


PROGRAMS = builder.read_table().programs()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "peer" in metafunc.fixturenames:
        metafunc.parametrize("peer", sorted(PROGRAMS))
    if "peer_with_flags" in metafunc.fixturenames:
        flags = {name: program.version_args or program.help_args for name, (_, program) in PROGRAMS.items()}
        metafunc.parametrize("peer_with_flags", sorted(name for name in flags if flags[name]))


@dataclass(frozen=True)
class Peers:
    """Where the programs are, and what is known of each: `programs[name]` is (module, program)."""

    binaries: Path
    programs: dict[str, tuple[Any, Any]]

    def need(self, *names: str) -> None:
        """Skip the test if one of the programs is not built; fail it where that must not happen."""
        missing = [name for name in names if not (self.binaries / name).is_file()]
        if not missing:
            return
        text = f"{', '.join(missing)} not built: run `make peers`"
        if os.environ.get("CI") or os.environ.get("DEVLET_PEERS") == "required":
            pytest.fail(text, pytrace=False)
        pytest.skip(text)

    def linked_version(self, name: str) -> str | None:
        """Of the upstream module, as the linker wrote it into the program."""
        module, _ = self.programs[name]
        version: str | None = builder.build_info(self.binaries / name).get(module.path)
        return version


@pytest.fixture(scope="session")
def peers() -> Peers:
    return Peers(BINARIES, PROGRAMS)


@pytest.fixture(scope="session")
def binaries(peers: Peers) -> Path:
    return peers.binaries


@pytest.fixture
def root() -> Iterator[Path]:
    """A node's root, short enough for its sockets."""
    path = Path(tempfile.mkdtemp(prefix="dv"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
async def cluster(peers: Peers) -> AsyncIterator[ControlPlane]:
    """etcd, kube-apiserver, kube-scheduler and kube-controller-manager, shared by the tests of a file."""
    peers.need("etcd", "kubectl", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with control_plane(
        peers.binaries,
        path,
        scheduler=True,
        controller_manager=True,
        users={"system:node:n1": ["system:nodes"]},
        fsync=False,
    ) as running:
        yield running
    shutil.rmtree(path)
