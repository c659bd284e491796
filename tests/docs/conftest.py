"""Fixtures for the tests of several pages."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest


@pytest.fixture
def passed(root: Path) -> Callable[[Mapping[str, str]], str]:
    """Run pytest on a project with these files as users do, assert that it passes, and return its output."""

    def run(files: Mapping[str, str]) -> str:
        for name, content in files.items():
            (root / name).write_text(content)
        command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "--strict-markers", "--rootdir=."]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
