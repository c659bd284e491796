import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from devlet.cli import demo, main
from devlet.demo import drivers, tour
from devlet.examples.fake_gpu_dra import Gpu

CHECKOUT = Path(__file__).parents[3]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.mark.parametrize("arguments", [[], ["--once"]])
def test_without_a_terminal_the_final_state_is_printed(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["demo", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == tour.ABOUT[0]
    assert {"Devices", "Resource claims", "Pods", "Last events"} <= set(lines)


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._descriptor = descriptor
        self._output = b""

    def read_until(self, pattern: str) -> str:
        """Return everything that was printed up to now, without control sequences; it has a line with the pattern."""
        while not re.search(f"{pattern}.*\n", self.text()):
            chunk = self._read()
            assert chunk, f"the program ended without {pattern!r}: {self.text()}"
        return self.text()

    def read_all(self) -> str:
        while self._read():
            pass
        return self.text()

    def press_ctrl_c(self) -> None:
        os.write(self._descriptor, b"\x03")

    def text(self) -> str:
        return _CONTROL.sub("", self.raw())

    def raw(self) -> str:
        return self._output.decode(errors="replace")

    def _read(self) -> bytes:
        try:
            chunk = os.read(self._descriptor, 65536)
        except OSError:  # the end of a terminal on Linux
            chunk = b""
        self._output += chunk
        return chunk


@contextmanager
def on_a_terminal(command: Sequence[str], **environ: str) -> Iterator[Terminal]:
    """Run a command in the checkout as a user does who has just logged in."""
    descriptor, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 160, 0, 0))
    clean = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(Path.home()), "TERM": "xterm", "LANG": "C.UTF-8"}
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=CHECKOUT,
        env=clean | environ,
    ) as process:
        os.close(terminal)
        try:
            yield Terminal(descriptor, process)
        finally:
            process.kill()
            os.close(descriptor)


PROGRAM = os.path.relpath(Path(sys.executable).parent / "devlet", CHECKOUT)
MAKE = ["make", "-o", ".venv/.run", "demo"]  # without looking whether everything is installed


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "code"), [([PROGRAM, "demo"], 0), (MAKE, -signal.SIGINT)], ids=["devlet demo", "make demo"]
)
def test_on_a_terminal_the_demo_stays_and_its_commands_work_as_printed_until_ctrl_c(
    command: list[str], code: int
) -> None:
    with on_a_terminal(command) as demo:
        text = demo.read_until(r"delete pod/infer .*")
        commands = re.findall(
            rf"^    ({re.escape(command[0] if command is not MAKE else '.venv/bin/devlet')} .*?) *$", text, re.MULTILINE
        )
        assert len(commands) == 3
        root = Path(shlex.split(commands[0])[-1])
        holders, explained, deleted = map(run_in_a_clean_shell, commands)
        assert all(pod in holders for pod in ("batch", "capture", "filter", "infer", "notebook", "viewer"))
        assert "render" in explained and "gpu-2" in explained
        assert "deleted" in deleted
        demo.read_until(r"render +Running .* GPU=gpu-2")
        assert demo.process.poll() is None
        demo.press_ctrl_c()
        rest = demo.read_all()
        assert demo.process.wait(60) == code
    assert "The demo has ended." in rest
    assert "Traceback" not in rest and "***" not in rest
    assert not root.exists()


def run_in_a_clean_shell(command: str) -> str:
    with on_a_terminal(["sh", "-c", command]) as shell:
        output = shell.read_all()
        assert shell.process.wait(60) == 0, output
    return output


@pytest.mark.long
@pytest.mark.parametrize(("arguments", "term"), [(["--once"], "xterm"), ([], "dumb")])
def test_on_a_terminal_plain_text_can_be_asked_for(arguments: list[str], term: str) -> None:
    with on_a_terminal([sys.executable, "-m", "devlet", "demo", *arguments], TERM=term) as demo:
        demo.read_all()
        assert demo.process.wait(60) == 0
    assert "notebook, viewer" in demo.text()
    assert "\x1b[" not in demo.raw()


def test_an_unexpected_result_is_an_error_and_the_state_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(drivers.GPUS, "gpu-2", Gpu("gpu-2"))
    monkeypatch.setattr(tour, "PATIENCE", 0.0)
    assert main.run(["demo", "--once"]) == 1
    printed = capsys.readouterr()
    assert "did not happen" in printed.err
    assert "Devices" in printed.out.splitlines()


@pytest.mark.parametrize(
    ("started", "program"),
    [
        (".venv/bin/devlet", ".venv/bin/devlet"),
        ("/my tools/devlet", "'/my tools/devlet'"),
        ("/usr/lib/python3/devlet/__main__.py", f"{sys.executable} -m devlet"),
    ],
)
def test_the_printed_commands_start_the_program_as_the_demo_was_started(started: str, program: str) -> None:
    assert demo._program(started) == program


def test_a_program_on_the_path_needs_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "devlet").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo._program(str(tmp_path / "devlet")) == "devlet"
    assert demo._program("/elsewhere/devlet") == "/elsewhere/devlet"
