"""The two servers that bench/api.py compares, each on an empty directory: `devlet up`, and etcd with kube-apiserver."""

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._report import PEERS, resident_mebibytes

from devlet.kit.processes import spawn
from devlet.testing.embedded import embedded_api
from tests.support.peers.control_plane import control_plane


@dataclass(frozen=True)
class Server:
    endpoint: str
    ca_file: Path
    token_file: Path
    pids: Mapping[str, int]
    seconds_to_ready: float  # from before the first process was started

    def resident_mebibytes(self) -> float:
        """Return the resident memory of all its processes."""
        return sum(map(resident_mebibytes, self.pids.values()))

    def most_resident_mebibytes(self) -> float:
        """Return the peak resident memory of all its processes."""
        return sum(resident_mebibytes(pid, "VmHWM") for pid in self.pids.values())


@asynccontextmanager
async def devlet(directory: Path) -> AsyncIterator[Server]:
    # Sockets are created below the root, so its path must be short; state goes to the measured disk.
    with _short_link(directory) as root:
        start = time.perf_counter()
        async with embedded_api(root, start=spawn) as api:
            took = time.perf_counter() - start
            yield Server(api.endpoint, api.ca_file, _token(directory, api.token), {"devlet": api.pid}, took)


@asynccontextmanager
async def kube_apiserver(directory: Path) -> AsyncIterator[Server]:
    start = time.perf_counter()
    async with control_plane(PEERS, directory) as plane:
        took = time.perf_counter() - start
        yield Server(plane.endpoint, plane.ca_file, _token(directory, plane.token), plane.pids, took)


def is_built() -> bool:
    return all((PEERS / name).is_file() for name in ("etcd", "kube-apiserver", "kubectl"))


def _token(directory: Path, token: str) -> Path:
    path = directory / "token"
    path.touch(mode=0o600)
    path.write_text(token)
    return path


@contextmanager
def _short_link(directory: Path) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="dv"))
    (place / "r").symlink_to(directory.absolute(), target_is_directory=True)
    try:
        yield place / "r"
    finally:
        shutil.rmtree(place)
