import os
import pty
import subprocess
import sys

import pytest

from devlet.cli import main


@pytest.mark.parametrize("arguments", [[], ["--once"]])
def test_without_a_terminal_the_final_state_is_printed(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["demo", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("What works so far")
    assert {"Devices", "Resource claims", "Pods", "Last watch events"} <= set(lines)


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
        assert process.wait(15) == 0
    assert b"after-restart" in output
    assert b"\x1b[" not in output
