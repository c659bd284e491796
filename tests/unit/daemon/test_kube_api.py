import re
import stat
from pathlib import Path

import pytest

from devlet.cluster.store.store import open_store
from devlet.daemon.config import Config
from devlet.daemon.kube_api import SOCKET, serving
from devlet.kit.clock import SystemClock

pytestmark = pytest.mark.anyio

EPHEMERAL = 32_768  # the first port that Linux gives to outgoing connections, by default


async def test_address_and_credentials_stay_the_same_over_a_restart(root: Path) -> None:
    clock, config = SystemClock(), Config(root=root, node_name="n")
    seen = []
    for _ in range(2):
        async with open_store(root / "cluster.db") as store, serving(store, config, clock):
            seen.append((root / "kubeconfig").read_text())
    assert seen[0] == seen[1]
    (port,) = re.findall(r"https://127\.0\.0\.1:(\d+)", seen[0])
    assert int(port) < EPHEMERAL  # or an outgoing connection may have it when the node starts again


async def test_what_is_secret_is_private(root: Path) -> None:
    async with open_store(root / "cluster.db") as store:
        async with serving(store, Config(root=root, node_name="n"), SystemClock()):
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [root / SOCKET, root / "kubeconfig"]}
            assert set(modes.values()) == {0o600}
            assert stat.S_IMODE((root / "pki").stat().st_mode) == 0o700
