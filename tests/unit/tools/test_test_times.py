import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.test_times import report

PROJECT = Path(__file__).parents[3]
TESTS = """
import subprocess, sys, time
import pytest

def test_passes(record_property):
    record_property("seed", 17)
    subprocess.run([sys.executable, "-c", "sum(range(3 * 10**6))"], check=True)

def test_fails():
    assert False

@pytest.fixture
def slow():
    time.sleep(0.2)

def test_skips():
    pytest.skip("not now")

def test_has_a_fixture(slow):
    pass
"""


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_every_test_is_recorded_with_outcome_wall_and_cpu_time(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    file = tmp_path / "new" / "times.json"
    options = ["-p", "tools.test_times", f"--times={file}", f"--rootdir={tmp_path}", "-c", os.devnull, *workers]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path / "test_it.py")]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    tests = json.loads(file.read_text())["tests"]
    assert {name: each["outcome"] for name, each in tests.items()} == {
        "test_it.py::test_passes": "passed",
        "test_it.py::test_fails": "failed",
        "test_it.py::test_skips": "skipped",
        "test_it.py::test_has_a_fixture": "passed",
    }
    assert tests["test_it.py::test_passes"]["cpu"] > 0.02  # that of the child process
    assert tests["test_it.py::test_passes"]["properties"] == {"seed": "17"}
    assert "properties" not in tests["test_it.py::test_fails"]
    waiting = tests["test_it.py::test_has_a_fixture"]
    assert waiting["setup"] >= 0.2 and waiting["wall"] >= 0.2


def test_the_report_adds_up_files_and_begins_with_the_slowest(tmp_path: Path) -> None:
    tests = {
        "tests/a.py::one": {"wall": 1.0, "cpu": 0.5, "setup": 0.25},
        "tests/a.py::two": {"wall": 2.0, "cpu": 0.5, "setup": 0.25},
        "tests/b.py::three": {"wall": 2.5, "cpu": 2.0, "setup": 0.0},
    }
    assert report(tests).splitlines() == [
        "  wall s    CPU s  setup s  slowest  tests  file",
        "     3.0      1.0      0.5      2.0      2  tests/a.py",
        "     2.5      2.0      0.0      2.5      1  tests/b.py",
        "",
        "  wall s    CPU s  setup s  test",
        "     2.5      2.0      0.0  tests/b.py::three",
        "     2.0      0.5      0.2  tests/a.py::two",
        "     1.0      0.5      0.2  tests/a.py::one",
        "",
        "3 tests, 6 s on all workers together, 3 CPU seconds",
    ]
