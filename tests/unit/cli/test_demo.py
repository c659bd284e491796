import os
import pty
import subprocess
import sys

import pytest

from devlet.cli import main
from devlet.demo import drivers, tour
from devlet.examples.fake_gpu_dra import Gpu


@pytest.mark.parametrize("arguments", [[], ["--once"]])
def test_without_a_terminal_the_final_state_is_printed(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["demo", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == tour.ABOUT[0]
    assert {"Devices", "Resource claims", "Pods", "Last events"} <= set(lines)


@pytest.mark.long
def test_on_a_terminal_once_prints_plain_text_too() -> None:
    controller, terminal = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "devlet", "demo", "--once"], stdout=terminal) as process:
        os.close(terminal)
        output = b""
        try:
            while chunk := os.read(controller, 65536):
                output += chunk
        except OSError:  # Linux's end of a terminal
            pass
        os.close(controller)
        assert process.wait(60) == 0
    assert b"notebook, viewer" in output
    assert b"\x1b[" not in output


def test_what_is_not_as_told_is_an_error_below_what_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(drivers.GPUS, "gpu-2", Gpu("gpu-2"))
    monkeypatch.setattr(tour, "PATIENCE", 0.0)
    assert main.run(["demo", "--once"]) == 1
    printed = capsys.readouterr()
    assert "did not come true" in printed.err
    assert "Devices" in printed.out.splitlines()
