"""What a terminal is shown of text that would act on it."""

import io
import os
import pty
import subprocess
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given

from devlet.cli import terminal
from devlet.cli.tables import printable

BIDI = "\u202e\u2066\u200f"
C1 = "\x9b31m\x85"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Zoë, 装置", "plain, Zoë, 装置"),
        (BIDI, "\\u202e\\u2066\\u200f"),
        (C1, "\\u009b31m\\u0085"),
        ("a\u2028b", "a\\u2028b"),
        ("\x1b[1mbold\x1b[0m\n", "\x1b[1mbold\x1b[0m\n"),
    ],
)
def test_what_would_act_on_a_terminal_is_shown_and_colours_stay(text: str, shown: str) -> None:
    assert terminal.visible(text) == shown


@given(st.text())
def test_no_text_can_control_a_terminal_once_it_is_laid_out(text: str) -> None:
    found = printable(text)
    assert not any((ord(c) < 32 and c != "\t") or 127 <= ord(c) < 160 for c in found)
    assert not set(BIDI) & set(found)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_terminals_are_protected_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tty, file = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", tty)
    monkeypatch.setattr(sys, "stderr", file)
    terminal.protect()
    terminal.protect()
    sys.stdout.writelines([f"{BIDI}\n"])
    sys.stderr.write(BIDI)
    assert tty.getvalue() == "\\u202e\\u2066\\u200f\n" and file.getvalue() == BIDI
    assert sys.stdout.isatty()


def test_an_error_on_a_terminal_shows_what_the_user_typed_without_acting_on_it() -> None:
    controller, side = pty.openpty()
    command = [sys.executable, "-m", "devlet", "get", f"pods{BIDI}{C1}", "--root", "/nonexistent"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=side, stderr=side)
    os.close(side)
    shown = os.read(controller, 65536).decode()
    os.close(controller)
    assert done.returncode == 1 and shown
    assert not set(BIDI) & set(shown) and "\x9b" not in shown
