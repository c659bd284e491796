import re
import subprocess
import sys
from pathlib import Path

import pytest

from devlet.kit.diagnostics import KEPT, SHOWN, attach, collect, take_failures

TESTS = Path(__file__).parents[2]


def test_what_is_attached_is_described_while_its_block_runs() -> None:
    assert collect() == ""
    with attach("driver", lambda: "it sleeps"):
        with attach("node", lambda: "it waits"):
            assert collect() == "\n--- driver\nit sleeps\n--- node\nit waits"
        assert collect() == "\n--- driver\nit sleeps"
    assert collect() == ""


def test_a_part_that_cannot_be_described_does_not_hide_the_others() -> None:
    def broken() -> str:
        raise OSError("gone")

    with attach("a", broken), attach("b", lambda: "fine"):
        assert collect() == "\n--- a\n(cannot be described: OSError('gone'))\n--- b\nfine"


def test_of_a_long_description_the_end_is_shown() -> None:
    with attach("a", lambda: "x" * SHOWN + "the end"):
        text = collect()
    assert text.startswith("\n--- a\n(…)\nx") and text.endswith("the end") and len(text) < SHOWN + 50


def test_a_part_whose_block_fails_is_described_on_the_way_out_and_handed_over_once() -> None:
    with pytest.raises(TimeoutError), attach("driver", lambda: "it sleeps"):
        raise TimeoutError
    assert take_failures() == "\n--- driver\nit sleeps"
    assert take_failures() == ""


def test_only_the_last_failures_are_kept() -> None:
    for number in range(KEPT + 1):
        with pytest.raises(TimeoutError), attach(f"driver {number}", lambda: "it sleeps"):
            raise TimeoutError
    assert take_failures().count("it sleeps") == KEPT


FAILING = """
import subprocess, sys
from devlet.kit.diagnostics import attach

def test_it():
    with attach("driver", lambda: "pid 7, runs; last line: waiting for the kubelet"):
        subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.1)
"""


def test_a_test_that_fails_without_our_waits_shows_what_was_running(root: Path) -> None:
    (root / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (root / "test_it.py").write_text(FAILING)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search("- what was running -.*\n--- driver\npid 7, runs; last line: waiting", done.stdout), done.stdout
