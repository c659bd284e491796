"""The plugin that lets the workers share the compilation of a fresh clone."""

import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import get_cache_dir
from tools.compile_once import compile_test

TEST = "def test_it():\n    assert {} == 2\n"


def run(test: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", test.name]
    return subprocess.run(command, cwd=test.parent, capture_output=True, text=True).stdout


def test_pytest_loads_what_was_compiled_and_its_assertions_are_explained(
    root: Path, pytestconfig: pytest.Config
) -> None:
    test = root / "test_it.py"
    test.write_text(TEST.format("1 + 2"))
    compiled = compile_test(test, pytestconfig)
    before = compiled.stat()
    assert "assert (1 + 2) == 2" in run(test)
    assert compiled.parent == get_cache_dir(test)
    assert compiled.stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_is_compiled_again_only_if_it_has_changed(root: Path, pytestconfig: pytest.Config) -> None:
    test = root / "test_it.py"
    test.write_text(TEST.format("1"))
    first = compile_test(test, pytestconfig).stat()
    again = compile_test(test, pytestconfig).stat()
    test.write_text(TEST.format("1 + 1"))
    changed = compile_test(test, pytestconfig).stat()
    assert again.st_ino == first.st_ino != changed.st_ino
    assert "1 passed" in run(test)
