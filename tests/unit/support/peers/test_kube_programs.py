"""Flags and refusals, with small scripts in the programs' place. The real ones are in tests/peers."""

from pathlib import Path

import pytest

from devlet.errors import InvalidInput, Unavailable
from tests.support.peers.kube_programs import kube_controller_manager, kube_scheduler, switches

pytestmark = pytest.mark.anyio


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """Programs that show their flags and give up."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("kube-scheduler", "kube-controller-manager"):
        (folder / name).write_text('#!/bin/sh\nfor flag; do echo "$flag"; done; exit 7\n')
        (folder / name).chmod(0o755)
    return folder


async def test_the_scheduler_is_told_where_the_api_is_and_to_lead_at_once(binaries: Path, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with pytest.raises(Unavailable, match="kube-scheduler: exited with 7 before it was ready"):
        async with kube_scheduler(binaries, tmp_path, kubeconfig, flags=["--more"]):
            pytest.fail("there is no real scheduler")
    flags = (tmp_path / "kube-scheduler.log").read_text().splitlines()
    assert {f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--more"} <= set(flags)


async def test_the_controller_manager_runs_only_the_controllers_it_is_given(binaries: Path, tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        async with kube_controller_manager(binaries, tmp_path, tmp_path / "k", controllers=["a", "b"], root_ca=None):
            pytest.fail("there is no real controller manager")
    flags = (tmp_path / "kube-controller-manager.log").read_text().splitlines()
    assert "--controllers=a,b" in flags
    assert not [flag for flag in flags if flag.startswith(("--root-ca-file", "--service-account"))]


async def test_a_program_that_is_not_built_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no kube-scheduler: run `make peers`"):
        kube_scheduler(tmp_path, tmp_path, tmp_path / "kubeconfig")


def test_switches_are_one_flag_or_none() -> None:
    assert switches("--feature-gates", {"A": True, "B": False}) == ["--feature-gates=A=true,B=false"]
    assert switches("--feature-gates", {}) == []
