import json
from pathlib import Path

import pytest

from tools.test_times import report

TESTS = '''
import subprocess, sys, time
import pytest

def test_passes():
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
'''


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_every_test_is_recorded_with_outcome_wall_and_cpu_time(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makepyfile(test_it=TESTS)
    file = pytester.path / "new" / "times.json"
    pytester.runpytest_subprocess("-p", "tools.test_times", f"--times={file}", *workers)
    tests = json.loads(file.read_text())["tests"]
    assert {name: each["outcome"] for name, each in tests.items()} == {
        "test_it.py::test_passes": "passed",
        "test_it.py::test_fails": "failed",
        "test_it.py::test_skips": "skipped",
        "test_it.py::test_has_a_fixture": "passed",
    }
    assert tests["test_it.py::test_passes"]["cpu"] > 0.02  # that of the child process
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
