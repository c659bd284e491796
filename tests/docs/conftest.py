"""What the tests of several pages do."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import pytest

PLUGIN = "devlet.testing.pytest_plugin"


@pytest.fixture
def passed(root: Path) -> Callable[[Mapping[str, str]], str]:
    """What pytest prints of a project with these files, which passes as users run it."""

    def run(files: Mapping[str, str]) -> str:
        for name, content in files.items():
            (root / name).write_text(content)
        installed = any(each.value == PLUGIN for each in entry_points(group="pytest11"))
        found = [] if installed else ["-p", PLUGIN]
        command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "--strict-markers", "--rootdir=.", *found]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
