"""The command becomes the program, so it runs in a process of its own."""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.cli import main

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


def devlet_exec(*arguments: str, environ: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "devlet", "exec", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120)


@pytest.fixture
def root(api: "API") -> Path:
    """On which a devlet seems to run."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("this kernel allows no mount namespaces here")
    return api.root


def test_the_program_sees_the_root_as_the_kubelets(root: Path) -> None:
    done = devlet_exec("--root", str(root), "--", "sh", "-c", "ls /var/lib/kubelet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "devlet.sock\n", "")


def test_the_root_can_come_from_the_environment(root: Path) -> None:
    done = devlet_exec("--", "ls", "/var/lib/kubelet", environ={"DEVLET_ROOT": str(root), "PATH": "/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (0, "devlet.sock\n"), done.stderr


def test_flags_after_the_program_are_the_programs(root: Path) -> None:
    done = devlet_exec("--root", str(root), "echo", "--root", "-h")
    assert (done.returncode, done.stdout) == (0, "--root -h\n"), done.stderr


@pytest.mark.parametrize(
    ("program", "code", "message"),
    [
        (["sh", "-c", "exit 3"], 3, ""),
        (["no-such-program"], 127, "error: no-such-program: no such program\n"),
        (["/etc/passwd"], 126, "error: /etc/passwd cannot be run: Permission denied\n"),
    ],
)
def test_the_exit_code_is_the_programs_or_what_shells_return(
    root: Path, program: list[str], code: int, message: str
) -> None:
    done = devlet_exec("--root", str(root), "--", *program)
    assert (done.returncode, done.stderr) == (code, message)


def test_without_a_running_devlet_nothing_is_started(tmp_path: Path) -> None:
    done = devlet_exec("--root", str(tmp_path), "--", "touch", str(tmp_path / "started"))
    assert done.stderr == f"error: no devlet runs on {tmp_path}: start one with `devlet up --root {tmp_path}`\n"
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])


@pytest.mark.parametrize("arguments", [[], ["--"], [""]])
def test_a_program_must_be_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["exec", *arguments]) == 1
    assert capsys.readouterr().err.startswith("error: no program given: use `devlet exec -- PROGRAM")
