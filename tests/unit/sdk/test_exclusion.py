import errno
import fcntl
import os
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import anyio
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint

from devlet.errors import Unavailable
from devlet.sdk import exclusion
from devlet.sdk.exclusion import LOCK_NAME, Exclusion

pytestmark = pytest.mark.anyio

F_OFD_GETLK = 36


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / LOCK_NAME


def holder_kind(path: Path) -> int:
    """What the kernel says of the whole file: F_UNLCK, or the lock that is in the way, and that no process owns it."""
    with open(path, "rb+") as file:
        asked = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, start, length, pid = struct.unpack("hhqqi0q", fcntl.fcntl(file, F_OFD_GETLK, asked))
    if kind != fcntl.F_UNLCK:
        assert (start, length, pid) == (0, 0, -1)
    return int(kind)


@contextmanager
def held_by_another_process(path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Until its input is closed or it is killed."""
    code = (
        "import sys, anyio\nfrom pathlib import Path\nfrom devlet.sdk.exclusion import Exclusion\n"
        "async def main():\n"
        "    async with Exclusion(Path(sys.argv[1])):\n"
        "        print('held', flush=True)\n"
        "        sys.stdin.read()\n"
        "anyio.run(main)\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def opened(path: Path, mode: str) -> IO[bytes]:
    return open(path, mode)


def waiting_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"waits for {LOCK_NAME}"]


async def until_a_thread_waits() -> None:
    while not waiting_threads():
        await checkpoint()


async def until_a_thread_waits_or_is_over(mine: Exclusion) -> None:
    while mine._waiting is None:
        await checkpoint()


async def until_no_thread_waits() -> None:
    for thread in waiting_threads():
        await to_thread.run_sync(thread.join)


@pytest.mark.spec("DN-5.6a")
@pytest.mark.parametrize("with_file", [False, True])
async def test_only_one_task_is_in_the_block_at_a_time(path: Path, with_file: bool) -> None:
    exclusion = Exclusion(path if with_file else None)
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        for _ in range(5):
            async with exclusion:
                inside += 1
                most = max(most, inside)
                await checkpoint()
                inside -= 1

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(work)
    assert (inside, most) == (0, 1)


@pytest.mark.spec("DN-5.6a")
async def test_without_a_path_nothing_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with Exclusion():
        assert os.listdir(tmp_path) == []


@pytest.mark.spec("DN-5.6b")
async def test_the_lock_is_one_of_the_open_file_on_the_whole_of_it(path: Path) -> None:
    async with Exclusion(path):
        assert holder_kind(path) == fcntl.F_WRLCK
    assert holder_kind(path) == fcntl.F_UNLCK


@pytest.mark.spec("DN-5.6b")
async def test_the_file_is_made_for_all_less_the_umask_and_stays(path: Path) -> None:
    before = os.umask(0)
    try:
        async with Exclusion(path):
            inode = os.stat(path).st_ino
        async with Exclusion(path):
            pass
    finally:
        os.umask(before)
    assert os.stat(path).st_ino == inode
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o666


@pytest.mark.spec("DN-5.6b")
async def test_two_instances_in_one_process_exclude_each_other(path: Path) -> None:
    """Locks of a process would not."""
    entered = anyio.Event()

    async def other() -> None:
        async with Exclusion(path):
            entered.set()

    async with anyio.create_task_group() as tasks:
        async with Exclusion(path):
            tasks.start_soon(other)
            await until_a_thread_waits()
            assert not entered.is_set()
        await entered.wait()


@pytest.mark.spec("DN-5.6c")
async def test_an_instance_waits_for_another_process_and_continues_when_that_is_killed(path: Path) -> None:
    order: list[str] = []
    with held_by_another_process(path) as process:
        assert holder_kind(path) == fcntl.F_WRLCK
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                async with Exclusion(path):
                    order.append("entered")

            tasks.start_soon(wait)
            await until_a_thread_waits()
            order.append("killed")
            process.kill()
    assert order == ["killed", "entered"]


@pytest.mark.spec("DN-5.6c")
async def test_a_process_that_has_it_keeps_others_out(path: Path) -> None:
    async with Exclusion(path):
        with pytest.raises(BlockingIOError), opened(path, "rb+") as file:
            fcntl.fcntl(file, 37, struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        assert holder_kind(path) == fcntl.F_WRLCK  # still: closing a file takes no lock of another away


async def test_a_cancelled_waiter_leaves_no_lock(path: Path) -> None:
    waiting = Exclusion(path)
    async with Exclusion(path):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiting.__aenter__)
            await until_a_thread_waits()
            tasks.cancel_scope.cancel()
    await until_no_thread_waits()
    assert holder_kind(path) == fcntl.F_UNLCK
    async with waiting:
        assert holder_kind(path) == fcntl.F_WRLCK


async def test_cancelled_waiters_leave_one_thread_for_the_next_waiter(path: Path) -> None:
    await until_no_thread_waits()  # of tests before
    waiting = Exclusion(path)
    async with Exclusion(path):
        for _ in range(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(waiting.__aenter__)
                await until_a_thread_waits()
                await checkpoint()
                tasks.cancel_scope.cancel()
        assert len(waiting_threads()) == 1
    async with waiting:
        assert holder_kind(path) == fcntl.F_WRLCK
    await until_no_thread_waits()
    assert holder_kind(path) == fcntl.F_UNLCK


async def test_a_waiter_that_is_cancelled_while_it_gets_the_lock_leaves_no_lock(path: Path) -> None:
    """The thread has it, and says so to a task that is no longer interested."""
    entered = 0

    async def enter() -> None:
        nonlocal entered
        async with mine:
            entered += 1

    for turns in range(20):
        mine = Exclusion(path)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enter)
            await until_a_thread_waits_or_is_over(mine)
            for thread in waiting_threads():
                thread.join()  # the loop stands still: the task has not heard of it
            for _ in range(turns % 3):
                await checkpoint()
            tasks.cancel_scope.cancel()
        assert holder_kind(path) == fcntl.F_UNLCK
    assert entered < 20


async def test_an_error_in_the_block_releases_the_lock(path: Path) -> None:
    mine = Exclusion(path)
    with pytest.raises(ZeroDivisionError):
        async with mine:
            raise ZeroDivisionError
    async with mine:
        pass


async def test_a_child_that_has_the_file_too_does_not_keep_the_lock(path: Path) -> None:
    mine = Exclusion(path)
    async with mine:
        assert mine._fd is not None
        copy = os.dup(mine._fd)  # as after a fork
    try:
        assert holder_kind(path) == fcntl.F_UNLCK
    finally:
        os.close(copy)


@pytest.mark.spec("DN-5.6d")
async def test_a_kernel_without_such_locks_takes_flock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusion, "_F_OFD_SETLKW", 999)
    monkeypatch.setattr(exclusion, "_F_OFD_SETLK", 999)
    with opened(path, "wb") as file:
        with pytest.raises(OSError) as e:
            fcntl.fcntl(file, 999, b"")
        assert e.value.errno == errno.EINVAL  # as such kernels say
        async with Exclusion(path):
            with pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_a_missing_directory_is_reported_with_what_to_do(tmp_path: Path) -> None:
    mine = Exclusion(tmp_path / "none" / LOCK_NAME)
    for _ in range(2):
        with pytest.raises(Unavailable) as e:
            await mine.__aenter__()
        path = tmp_path / "none" / LOCK_NAME
        assert str(e.value) == f"{path} cannot be locked: No such file or directory; make the directory"
