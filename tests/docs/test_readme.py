"""The commands of the README work as they stand: in a clean shell, with only what the README says to install."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
INSTALL, WHEEL, NODE, *THINGS = BLOCKS
# What each prints at the end, among other lines.
PRINTED = (
    ["machine", "example.com/null", "null-"],
    ["devlet play is ready", "Connected", "gpu.nvidia.com", "true"],
    ["does not fit", "What would help:", "ask for 1 instead of 2"],
    ["3 passed"],
    ["passed  DP-REG-1", "passed  DP-ALLOC-1"],
)
KEPT = ("PIP_", "SSL_", "HTTP_", "HTTPS_", "NO_PROXY", "http_", "https_", "no_proxy")  # where packages come from


def test_the_readme_has_five_things_to_try() -> None:
    assert re.findall(r"^\*\*(\d)\. ", README, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert len(THINGS) == len(PRINTED) == 5


def test_the_commands_of_the_readme_are_those_of_the_makefile() -> None:
    assert re.findall(r"^\$ (make \w+)", README, re.MULTILINE) == ["make demo", "make test"]


class Machine:
    """A user's home directory, and a directory that replaces /tmp in the blocks of the README."""

    def __init__(self, place: Path) -> None:
        self.home, self.tmp, self._output = place / "home", place / "t", place / "output"
        for directory in (self.home, self.tmp):
            directory.mkdir()
        kept = {name: text for name, text in os.environ.items() if name.startswith(KEPT)}
        path = f"{Path(sys.base_prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        self._environ = {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", **kept}

    def run(self, block: str, directory: Path) -> str:
        """Run the block in a shell of its own, and return what it printed. Programs that it started end with it."""
        with self._output.open("w") as output, self._started(block, directory, output) as shell:
            code = shell.wait(600)
        assert code == 0, self._output.read_text()
        return self._output.read_text()

    @contextmanager
    def running(self, block: str, ready: str) -> Iterator[None]:
        """Run a block that does not end by itself; enter once it has printed a line that begins like this."""
        with self._started(block, self.home, subprocess.PIPE) as shell:
            assert shell.stdout is not None
            assert any(line.startswith(ready) for line in shell.stdout)
            try:
                yield
            finally:
                end(shell)
                shell.stdout.read()  # until all of them have ended

    @contextmanager
    def _started(self, block: str, directory: Path, output: IO[str] | int) -> Iterator[subprocess.Popen[str]]:
        activate = self.home / "devlet-env/bin/activate"
        script = "\n".join(["set -e", f". {activate}" if activate.exists() else "", block])
        with subprocess.Popen(
            ["sh", "-c", script.replace("/tmp/dv1", f"{self.tmp}/dv1").replace("/tmp/led", f"{self.tmp}/led")],
            cwd=directory,
            env=self._environ,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as shell:
            try:
                yield shell
            finally:
                end(shell)


def end(shell: subprocess.Popen[str]) -> None:
    """Stop the shell and all programs that it started."""
    with suppress(ProcessLookupError):  # all of them have ended
        os.killpg(shell.pid, signal.SIGTERM)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine on which devlet was installed in both ways that the README describes."""
    place = Path(tempfile.mkdtemp(prefix="dv"))
    machine = Machine(place)
    checkout = place / "checkout"
    checkout.mkdir()
    shutil.copytree(CHECKOUT / "src", checkout / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, checkout)
    machine.run(INSTALL, checkout)
    machine.run(WHEEL, checkout)
    yield machine
    shutil.rmtree(place)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_commands_work_in_a_clean_shell(machine: Machine) -> None:
    """One test, because installing takes most of the time."""
    with machine.running(NODE, ready="devlet is ready"):
        for number, (block, expected) in enumerate(zip(THINGS, PRINTED, strict=True), 1):
            printed = machine.run(block, machine.home)
            assert [text for text in expected if text not in printed] == [], f"{number}: {printed}"
