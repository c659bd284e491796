"""Our program around the kubelet's managers does what tests of drivers rely on."""

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.errors import InvalidInput
from tests.support.peers.control_socket import ControlSocket
from tests.support.peers.kubelet_plugins import kubelet_plugins

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.fixture
def program(peers: "Peers") -> Path:
    peers.need("kubelet-plugins")
    return peers.binaries / "kubelet-plugins"


async def test_a_node_without_plugins_admits_pods_that_want_none(program: Path, root: Path) -> None:
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": [{"name": "main"}]}}
    async with kubelet_plugins(program.parent, root) as kubelet:
        assert await kubelet.capacity() == {}
        await kubelet.admit(pod)
        container = (await kubelet.start(pod))["main"]
        assert (container.env, container.devices, container.cdi) == ({}, None, None)
        await kubelet.forget(pod)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("walk", '"walk": no such command, or it lacks the pod'),
        ("prepare", "without a kubeconfig there is no DRA manager"),
        ("driver", "without a kubeconfig there is no DRA manager"),
    ],
)
async def test_what_it_cannot_do_is_refused(program: Path, root: Path, command: str, problem: str) -> None:
    pod = {} if command == "walk" else {"pod": {"metadata": {"uid": "u"}}}
    async with kubelet_plugins(program.parent, root):
        with pytest.raises(InvalidInput, match=problem):
            await ControlSocket("p", root / "kubelet.control").do(command, **pod)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["node", "--root=/tmp"], "node: --control missing"),
        (["node", "--root=/tmp", "--control=/c", "--v=x"], "node: --v: "),
        (["node", "--root=/nowhere", "--control=/c"], "node: stat /nowhere/device-plugins: no such file or directory"),
        (["runtime", "--socket=/s"], "runtime: --containers missing"),
    ],
)
def test_what_makes_no_sense_is_refused(program: Path, arguments: list[str], problem: str) -> None:
    answer = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"kubelet-plugins: {problem}")


def test_another_directory_than_the_kubelets_is_refused(program: Path, root: Path) -> None:
    (root / "device-plugins").mkdir()
    answer = subprocess.run(
        [program, "node", f"--root={root}", f"--control={root}/c"], capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 2
    assert f"{root}/device-plugins is not mounted at /var/lib/kubelet/device-plugins/" in answer.stderr


def test_an_unknown_command_gets_the_list_of_commands(program: Path) -> None:
    answer = subprocess.run([program, "read"], capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (2, "usage: kubelet-plugins COMMAND")
