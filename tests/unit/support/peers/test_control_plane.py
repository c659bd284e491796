"""Without the binaries: what is written and refused before anything starts, with small scripts in their place.

The real thing is in tests/peers."""

import csv
import json
import stat
from pathlib import Path

import pytest

from devlet.errors import InvalidInput, Unavailable
from tests.support.peers.control_plane import control_plane

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """An etcd that shows its flags and gives up."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (folder / name).write_text('#!/bin/sh\nfor flag; do echo "$flag"; done; exit 7\n')
        (folder / name).chmod(0o755)
    return folder


async def attempt(binaries: Path, root: Path, *, fsync: bool = True) -> str:
    users = {"system:node:n1": ["system:nodes", "more"]}
    with pytest.raises(Unavailable) as caught:
        async with control_plane(binaries, root, users=users, fsync=fsync):
            pytest.fail("there is no real etcd")
    return str(caught.value)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_missing_programs_are_all_named_with_what_to_do(binaries: Path, tmp_path: Path) -> None:
    (binaries / "etcd").unlink()
    with pytest.raises(InvalidInput, match="has no etcd, kube-scheduler: run `make peers`"):
        async with control_plane(binaries, tmp_path / "root", scheduler=True):
            pytest.fail("there is nothing to run")


async def test_a_program_that_dies_is_reported_with_its_log(binaries: Path, tmp_path: Path) -> None:
    text = await attempt(binaries, tmp_path / "root")
    assert text.startswith("etcd: exited with 7 before it was ready; the end of ")
    assert "--name=peers" in text


async def test_etcd_syncs_unless_it_is_told_not_to(binaries: Path, tmp_path: Path) -> None:
    assert "--unsafe-no-fsync" not in await attempt(binaries, tmp_path / "a")
    assert "--unsafe-no-fsync" in await attempt(binaries, tmp_path / "b", fsync=False)


async def test_everything_listens_on_loopback_only(binaries: Path, tmp_path: Path) -> None:
    text = await attempt(binaries, tmp_path / "root")
    listening = [line.split("=", 1)[1] for line in text.split() if line.startswith("--listen-")]
    assert [url.rsplit(":", 1)[0] for url in listening] == ["http://127.0.0.1"] * 2


async def test_credentials_are_for_the_owner_only(binaries: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    await attempt(binaries, root)
    files = ("kubeconfig", "tokens.csv", "service-accounts.key", "system_node_n1.kubeconfig")
    assert [mode(root / name) for name in files] == [0o600] * 4
    assert mode(root) == 0o700


async def test_each_user_has_a_token_its_groups_and_a_kubeconfig(binaries: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    await attempt(binaries, root)
    admin, node = rows(root / "tokens.csv")
    assert (admin[1], admin[3]) == ("admin", "system:masters")
    assert (node[1], node[3]) == ("system:node:n1", "system:nodes,more")
    assert admin[0] != node[0]
    kubeconfig = document(root / "system_node_n1.kubeconfig")
    assert kubeconfig["users"] == [{"name": "system:node:n1", "user": {"token": node[0]}}]


async def test_the_service_account_key_stays_the_same_over_restarts(binaries: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    await attempt(binaries, root)
    first = text(root / "service-accounts.key")
    await attempt(binaries, root)
    assert first == text(root / "service-accounts.key")
    assert first.startswith("-----BEGIN EC PRIVATE KEY-----")


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def document(path: Path) -> dict[str, object]:
    return dict(json.loads(path.read_text()))


def text(path: Path) -> str:
    return path.read_text()
