"""Fixtures for all tests."""

import gc
import logging
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from devlet.kit import diagnostics
from devlet.testing.grpc_loop import GrpcLoop

# A slow machine fails nothing: what counts is what a property says, not how fast its examples are drawn.
settings.register_profile("devlet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("devlet"), max_examples=25)


def is_quick(config: pytest.Config) -> bool:
    return "not long" in config.option.markexpr


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in whatever a shell starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("quick" if is_quick(config) else "devlet")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exempt the collected tests from garbage collection: about a million objects live until pytest exits."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)  # the default looks at the objects of every test tens of times


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Every property is its own long twin: few examples where `long` is left out, and all where it is asked for."""
    for item in items:
        if not is_quick(config) and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.long)
    yield  # deselects tests that were not asked for
    items[:] = slow_first(items, getattr(config, "workerinput", {}).get("workercount", 1))


SLOW = 600  # seconds; tests with a timeout this long take a minute or more


def slow_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order the tests so that every worker starts with its share of the slow ones.

    pytest-xdist (`--dist worksteal`) gives each worker a contiguous block of equal length."""
    slow = sorted((item for item in items if _timeout(item) >= SLOW), key=_timeout, reverse=True)
    rest = [item for item in items if _timeout(item) < SLOW]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        size = (len(items) - len(ordered)) // (workers - worker)
        mine = slow[worker::workers]
        ordered += mine + rest[: max(size - len(mine), 0)]
        del rest[: max(size - len(mine), 0)]
    return ordered + rest


def _timeout(item: pytest.Item) -> float:
    """Return the test's own time limit, or 0."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what was running when a test failed, unless the failed wait has shown it already."""
    report = yield
    running = diagnostics.take_failures() + diagnostics.collect() if report.failed else diagnostics.take_failures()
    if report.failed and running and diagnostics.MARK not in report.longreprtext:
        report.sections.append(("what was running", running.lstrip()))
    return report


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": GrpcLoop}


@pytest.fixture(autouse=True)
def _logs_end_with_their_test() -> Iterator[None]:
    """A command that runs in this process logs to its standard error, which is closed when the test is over."""
    loggers = [logging.getLogger(), logging.getLogger("devlet")]
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory with a short path: sockets below it must stay under 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="dv"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
