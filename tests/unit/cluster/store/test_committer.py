import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from devlet.cluster.store import log_file
from devlet.cluster.store.committer import Committer
from devlet.cluster.store.log_file import LogFile, Row
from devlet.errors import DevletError, Unavailable
from devlet.kit.changes import Changes
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


class Disk(LogFile):
    """A log on a disk that can be stopped, and can be full."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.start_writing()
        self.asked = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.problem: Exception | None = None
        self.batches: list[list[int]] = []

    def append(self, rows: list[Row]) -> None:  # type: ignore[override]
        self.asked.set()
        self.may_go_on.wait(60)
        self.batches.append([row.version for row in rows])
        if self.problem is not None:
            raise self.problem
        super().append(rows)


class Reports:
    def __init__(self) -> None:
        self.batches: list[tuple[list[int], DevletError | None]] = []
        self._changes = Changes()

    def __call__(self, rows: list[Row], error: DevletError | None) -> None:
        self.batches.append(([row.version for row in rows], error))
        self._changes.notify()

    async def until(self, version: int) -> None:
        with deadline():
            await self._changes.until(lambda: any(version in versions for versions, _ in self.batches))

    def outcome(self, version: int) -> DevletError | None:
        return next(error for versions, error in self.batches if version in versions)


@pytest.fixture
def disk(root: Path) -> Iterator[Disk]:
    log_file.create(root / "log.db", 0)
    disk = Disk(root / "log.db")
    yield disk
    disk.close()


def row(version: int, size: int = 10) -> Row:
    return Row(version, 0, "k", "", f"n{version}", False, 0, b"x" * size)


async def test_rows_are_committed_in_order_and_reported_after_they_are_durable(disk: Disk) -> None:
    reports = Reports()
    committer = Committer(disk, reports)
    with committer.running():
        for version in range(1, 50):
            committer.submit(row(version))
        await reports.until(49)
    assert [version for versions, _ in reports.batches for version in versions] == list(range(1, 50))
    assert disk.read(list(range(1, 50))).keys() == set(range(1, 50))


async def test_what_arrives_during_a_commit_shares_the_next(disk: Disk) -> None:
    reports = Reports()
    committer = Committer(disk, reports)
    disk.may_go_on.clear()
    with committer.running():
        committer.submit(row(1))
        await anyio.to_thread.run_sync(disk.asked.wait, 10)
        for version in range(2, 20):
            committer.submit(row(version))
        disk.may_go_on.set()
        await reports.until(19)
    assert disk.batches == [[1], list(range(2, 20))]


async def test_a_batch_has_a_limit(disk: Disk) -> None:
    reports = Reports()
    committer = Committer(disk, reports, max_batch_bytes=100)
    for version in range(1, 8):
        committer.submit(row(version, 50))
    with committer.running():
        await reports.until(7)
    assert disk.batches == [[1, 2], [3, 4], [5, 6], [7]]


async def test_leaving_finishes_what_was_submitted(disk: Disk) -> None:
    committer = Committer(disk, Reports())
    with committer.running():
        committer.submit(row(1))
    assert disk.read([1]).keys() == {1}


@pytest.mark.parametrize("problem", [Unavailable("the disk is full"), RuntimeError("unheard of")])
async def test_a_failure_refuses_all_rows_until_the_owner_knows(disk: Disk, problem: Exception) -> None:
    reports = Reports()
    committer = Committer(disk, reports)
    with committer.running():
        committer.submit(row(1))
        await reports.until(1)
        disk.problem = problem
        committer.submit(row(2))
        await reports.until(2)
        disk.problem = None
        committer.submit(row(3))  # prepared on top of the second
        await reports.until(3)
        committer.resume()
        committer.submit(row(4))
        await reports.until(4)
    assert reports.outcome(1) is None
    for version in (2, 3):
        error = reports.outcome(version)
        assert isinstance(error, Unavailable) and str(problem) in str(error)
    assert reports.outcome(4) is None
    assert disk.read([1, 2, 3, 4]).keys() == {1, 4}


async def test_another_job_runs_between_two_commits(disk: Disk) -> None:
    reports, jobs = Reports(), list[int]()
    committer = Committer(disk, reports)
    committer.submit(row(1))
    committer.run(lambda: jobs.append(len(disk.batches)))
    committer.submit(row(2))
    with committer.running():
        await reports.until(2)
    assert (jobs, disk.batches) == ([1], [[1], [2]])


async def test_the_thread_is_woken_once_for_all_writes_of_one_turn_of_the_loop(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer = Committer(disk, Reports())
    woken_for: list[int] = []
    monkeypatch.setattr(committer, "_wake", lambda: woken_for.append(len(committer._queue)))
    for version in range(1, 6):
        committer.submit(row(version))
    assert woken_for == []
    await anyio.lowlevel.checkpoint()
    assert woken_for == [5]
