"""A pytest plugin that records where the time of a test run goes: `pytest -p tools.test_times --times=FILE`.

Writes a JSON file with the wall time, the CPU time, the outcome and the properties of every test. CPU time is that of
the test's own process and of the child processes that ended during the test. `python -m tools.test_times FILE` prints
the files and tests that take the longest.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

_PROPERTY = "devlet-cpu-seconds"
_BEGAN = pytest.StashKey[float]()


@dataclass
class TestTime:
    """The time of one test, in seconds; `setup` is the part of `wall` before the test's own code ran."""

    __test__ = False  # not a test class

    wall: float = 0.0
    cpu: float = 0.0
    setup: float = 0.0
    outcome: str = "passed"
    properties: dict[str, str] = field(default_factory=dict)  # of pytest's `record_property`


@dataclass
class Times:
    """The times of a run, test by test, collected from the reports of every worker."""

    tests: dict[str, TestTime] = field(default_factory=dict)

    def add(self, report: pytest.TestReport) -> None:
        test = self.tests.setdefault(report.nodeid, TestTime())
        test.wall += report.duration
        if report.when == "setup":
            test.setup = report.duration
        if report.when == "teardown":
            properties = dict(report.user_properties)
            test.cpu = float(str(properties.pop(_PROPERTY)))
            test.properties = {name: str(value) for name, value in properties.items()}
        if report.failed:
            test.outcome = "failed"
        elif report.skipped and test.outcome == "passed":
            test.outcome = "skipped"

    def write(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        tests = {name: _rounded(test) for name, test in sorted(self.tests.items())}
        file.write_text(json.dumps({"tests": tests}, indent=0) + "\n")


def _rounded(test: TestTime) -> dict[str, object]:
    fields = {name: value for name, value in asdict(test).items() if value != {}}
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in fields.items()}


class _Recorder:
    """The part that writes the file, in the only process or in the xdist controller."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._times = Times()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._times.add(report)

    def pytest_sessionfinish(self) -> None:
        self._times.write(self._file)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="write the wall and CPU time of every test to FILE, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    if (file := config.option.times) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(Path(file)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGAN] = _cpu()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    finally:
        item.user_properties.append((_PROPERTY, _cpu() - item.stash[_BEGAN]))


def _cpu() -> float:
    own = os.times()
    return time.process_time() + own.children_user + own.children_system


def report(tests: dict[str, dict[str, float]], most: int = 25) -> str:
    """Return the files and tests that take the longest, as text."""
    files: dict[str, list[dict[str, float]]] = defaultdict(list)
    for name, test in tests.items():
        files[name.partition("::")[0]].append(test)
    totals = {
        name: {key: sum(test[key] for test in group) for key in ("wall", "cpu", "setup")}
        | {"slowest": max(test["wall"] for test in group), "tests": len(group)}
        for name, group in files.items()
    }
    lines = [f"{'wall s':>8} {'CPU s':>8} {'setup s':>8} {'slowest':>8} {'tests':>6}  file"]
    for name, total in sorted(totals.items(), key=lambda pair: -pair[1]["wall"])[:most]:
        numbers = " ".join(f"{total[key]:8.1f}" for key in ("wall", "cpu", "setup", "slowest"))
        lines.append(f"{numbers} {total['tests']:6.0f}  {name}")
    lines.append(f"\n{'wall s':>8} {'CPU s':>8} {'setup s':>8}  test")
    for name, test in sorted(tests.items(), key=lambda pair: -pair[1]["wall"])[:most]:
        lines.append(f"{test['wall']:8.1f} {test['cpu']:8.1f} {test['setup']:8.1f}  {name}")
    wall, cpu = (sum(test[key] for test in tests.values()) for key in ("wall", "cpu"))
    return "\n".join([*lines, f"\n{len(tests)} tests, {wall:.0f} s on all workers together, {cpu:.0f} CPU seconds"])


if __name__ == "__main__":
    print(report(json.loads(Path(sys.argv[1]).read_text())["tests"]))
