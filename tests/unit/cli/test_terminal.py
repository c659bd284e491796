"""What a terminal is shown of text that would act on it."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import hypothesis.strategies as st
import pytest
from hypothesis import given

from devlet.cli import terminal
from devlet.cli.tables import printable

ESC = "\x1b]0;title\x07\x1b[31m\r\x7f"
BIDI = "\u202e\u2066\u200f"
C1 = "\x9b31m\x85"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Zoë, 装置", "plain, Zoë, 装置"),
        (BIDI, "\\u202e\\u2066\\u200f"),
        (C1, "\\u009b31m\\u0085"),
        ("a\u2028b", "a\\u2028b"),
        (ESC, "^[]0;title^G^[[31m^M^?"),
        ("a\tb\n", "a\tb\n"),
    ],
)
def test_what_would_act_on_a_terminal_is_shown(text: str, shown: str) -> None:
    assert terminal.visible(text) == shown


@given(st.text())
def test_no_text_can_control_a_terminal_once_it_is_laid_out(text: str) -> None:
    found = printable(text)
    assert not any((ord(c) < 32 and c != "\t") or 127 <= ord(c) < 160 for c in found)
    assert not set(BIDI) & set(found)


class Terminal(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def written(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


def standard_output(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal; standard error is a file."""
    tty = Terminal()
    monkeypatch.setattr(sys, "stdout", tty)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    terminal.protect()
    return tty


def test_only_terminals_are_protected_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tty = standard_output(monkeypatch)
    terminal.protect()
    sys.stdout.writelines([f"{BIDI}\n"])
    sys.stderr.write(BIDI)
    assert tty.written() == "\\u202e\\u2066\\u200f\n"
    assert isinstance(sys.stderr, io.StringIO) and sys.stderr.getvalue() == BIDI
    assert sys.stdout.isatty()


def test_bytes_are_protected_as_text_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tty = standard_output(monkeypatch)
    click.echo(f"Zoë {C1}{ESC}".encode(), nl=False)
    assert tty.written() == "Zoë \\u009b31m\\u0085^[]0;title^G^[[31m^M^?"


def test_control_sequences_of_our_own_are_written_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    tty = standard_output(monkeypatch)
    terminal.own(sys.stdout).write("\x1b[0m")
    assert tty.written() == "\x1b[0m"
    file = io.StringIO()
    assert terminal.own(file) is file


ACTING = {*map(chr, range(32)), *map(chr, range(127, 160)), *BIDI} - set("\r\n\t")


def on_a_terminal(*arguments: str, **environ: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    controller, side = pty.openpty()
    command = [sys.executable, "-m", "devlet", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=side, stderr=side, env=os.environ | environ
    ) as process:
        os.close(side)
        shown = b""
        with os.fdopen(controller, "rb", buffering=0) as output:
            try:
                while read := output.read(65536):
                    shown += read
            except OSError:  # EIO: the process has exited
                pass
    return process.returncode, shown.decode()


HOSTILE = f"a{BIDI}{C1}{ESC}"


@pytest.mark.parametrize("environ", [{}, {"PYTHONIOENCODING": "ascii:backslashreplace"}])
@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (1, ("get", "pods", "--root", f"/nonexistent/{HOSTILE}")),
        (1, (HOSTILE,)),
        (1, ("checkpoint", "show", f"/nonexistent/{HOSTILE}")),
        (1, ("checkpoint", "verify", "TWICE")),
        (0, ("checkpoint", "show", "TWICE")),
        (0, ("checkpoint", "convert", "ONCE")),
    ],
)
def test_no_command_writes_what_acts_on_a_terminal(
    tmp_path: Path, code: int, arguments: tuple[str, ...], environ: dict[str, str]
) -> None:
    entry = {"PodUID": HOSTILE, "ContainerName": HOSTILE, "ResourceName": HOSTILE, "DeviceIDs": [HOSTILE]}
    files = {"ONCE": [entry], "TWICE": [entry, entry | {"PodUID": "other"}]}
    for name, entries in files.items():
        (tmp_path / name).write_text(json.dumps({"Entries": entries}))
    given = (str(tmp_path / each) if each in files else each for each in arguments)
    found, shown = on_a_terminal(*given, **environ)
    assert found == code and "0;title" in shown
    assert not ACTING & set(shown)
