"""Run etcd in a separate process, and the Go program that loads it. `make peers` builds both."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from bench._report import PEERS

from devlet.kit.processes import process
from tests.support.free_ports import LOOPBACK, free_ports
from tests.support.peers.health import answers

QUOTA_BYTES = 8 << 30


def is_built() -> bool:
    return all((PEERS / name).is_file() for name in ("etcd", "bench-etcd"))


@asynccontextmanager
async def etcd(directory: Path) -> AsyncIterator[tuple[str, int]]:
    """Run an empty etcd with its default fsync. Yield its endpoint and its pid."""
    client_port, peer_port = free_ports(2)
    client, peer = f"http://{LOOPBACK}:{client_port}", f"http://{LOOPBACK}:{peer_port}"
    flags = [
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--quota-backend-bytes={QUOTA_BYTES}",
        "--log-level=warn",
    ]
    log = directory / "etcd.log"
    async with process([PEERS / "etcd", *flags], log=log, ready=answers(f"{client}/readyz")) as running:
        yield client, running.pid


async def load(endpoint: str, **flags: object) -> dict[str, float]:
    """Run bench-etcd and return its figures. It fills and empties etcd outside the measured time."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    answer = await anyio.run_process([PEERS / "bench-etcd", f"--endpoint={endpoint}", *words])
    figures: dict[str, float] = json.loads(answer.stdout)
    return figures
