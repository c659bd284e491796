import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from devlet.errors import DevletError, InvalidInput, StateCorrupt, TooLarge, Unavailable
from devlet.kit import atomic_file
from devlet.kit.parts import running
from devlet.state import checkpoint_file
from devlet.state.checkpoint_file import CheckpointFile, GroupSaver, check_key
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline
from tests.support.small_disk import in_mount_namespace

NOW = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
SAVER = Path(__file__).with_name("full_disk_saver.py")


@pytest.mark.spec("DP-8.65")
@pytest.mark.parametrize(
    "key", ["/id1", ".id1", "", " ", "  id1", "id1 ", "___", "id1-", "-id1", "a/b", "..", "a\n", "é", "a" * 251]
)
@pytest.mark.spec("DN-10.C05")
def test_an_invalid_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match="invalid key"):
        check_key(key)


@pytest.mark.spec("DP-8.65")
@pytest.mark.parametrize("key", ["a", "a7.87-6_8", "4c7e1f0a9bd2", "kubelet_internal_checkpoint", "a" * 250])
def test_a_valid_key_is_accepted(key: str) -> None:
    check_key(key)


@pytest.mark.spec("DP-8.63")
def test_only_its_owner_can_read_a_written_checkpoint_back(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "new" / "state")
    assert file.read() is None
    file.prepare()
    file.write(b"one")
    file.write(b"two")
    assert file.read() == b"two"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path / "new") == ["state"]


@pytest.mark.spec("DP-8.64")
def test_checkpoints_are_listed_and_can_be_removed_twice(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "state")
    file.write(b"one")
    (tmp_path / ".123").touch()
    assert checkpoint_file.names(tmp_path) == ["state"]
    file.remove()
    file.remove()
    assert (file.read(), checkpoint_file.names(tmp_path)) == (None, [])
    assert checkpoint_file.names(tmp_path / "missing") == []


@pytest.mark.spec("DP-9.15")
def test_other_files_in_the_directory_are_not_checkpoints(tmp_path: Path) -> None:
    for name in ("kubelet.sock", "state2", "state.damaged-20250304T050607Z"):
        (tmp_path / name).touch()
    assert CheckpointFile(tmp_path / "state").read() is None


@pytest.mark.spec("DP-9.13")
def test_a_damaged_file_is_set_aside_and_never_replaces_another(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "state")
    made = []
    for number in range(12):
        file.write(b"%d" % number)
        made.append(file.set_aside(NOW.astimezone(timezone(timedelta(hours=5)))))
        assert file.read() is None
    assert made[0] == tmp_path / "state.damaged-20250304T050607Z"
    assert made[1] == tmp_path / "state.damaged-20250304T050607Z-1"
    assert [path.read_bytes() for path in made] == [b"%d" % number for number in range(12)]
    file.write(b"new")
    (tmp_path / "other.damaged-20250304T050607Z").touch()
    assert file.set_aside_files() == made


@pytest.mark.spec("DP-9.13")
def test_only_unfinished_writes_are_removed(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "plugins" / "state")
    file.prepare()
    directory = file.path.parent
    for name in (".123456789", ".state.a8s.tmp", ".hidden", ".12a", "123", "state", "state.damaged-20250304T050607Z"):
        (directory / name).touch()
    (directory / ".5").mkdir()
    file.prepare()
    assert sorted(os.listdir(directory)) == [
        ".12a",
        ".5",
        ".hidden",
        "123",
        "state",
        "state.damaged-20250304T050607Z",
    ]


def test_the_directory_is_created_with_the_mode_of_the_kubelet(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        CheckpointFile(tmp_path / "plugins" / "state").prepare()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "plugins").stat().st_mode) == 0o755


def test_the_size_of_a_file_is_limited_for_reading_and_writing(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "state", max_bytes=5)
    file.write(b"12345")
    assert file.read() == b"12345"
    with pytest.raises(TooLarge, match="6 bytes are more than the 5"):
        file.write(b"123456")
    assert file.read() == b"12345"
    file.path.write_bytes(b"123456")
    with pytest.raises(StateCorrupt, match=f"{file.path} has more than the 5 bytes"):
        file.read()


def test_something_that_is_not_a_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    with pytest.raises(InvalidInput, match="pipe is not a file"):
        CheckpointFile(tmp_path / "pipe").read()
    with pytest.raises(InvalidInput, match="directory is not a file"):
        CheckpointFile(tmp_path / "directory").read()


def test_an_error_of_the_system_names_the_file_and_the_cause(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    file = CheckpointFile(tmp_path / "plain" / "state")
    calls: list[Callable[[], object]] = [
        file.read,
        file.prepare,
        lambda: file.write(b""),
        lambda: file.set_aside(NOW),
        file.remove,
    ]
    for call in calls:
        with pytest.raises(Unavailable, match=r"plain.* cannot be .*: (Not a directory|File exists)"):
            call()


class Disk(CheckpointFile):
    """A file on a disk that can block or fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.writes: list[bytes] = []
        self.asked = threading.Semaphore(0)
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.refuses_once = False

    def write(self, content: bytes) -> None:
        self.writes.append(content)
        self.asked.release()
        assert self.may_go_on.wait(60)
        try:
            super().write(content)
        finally:
            if self.refuses_once:
                self.refuses_once = False
                self.accept()

    async def until_asked(self) -> None:
        assert await anyio.to_thread.run_sync(lambda: self.asked.acquire(timeout=60))

    def refuse(self) -> None:
        """Make writes fail: a file cannot replace a directory."""
        self.path.unlink(missing_ok=True)
        self.path.mkdir()

    def accept(self) -> None:
        self.path.rmdir()


class Memory:
    """The content to save."""

    def __init__(self) -> None:
        self.value = 0

    def content(self) -> bytes:
        return b"%d" % self.value


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "state")


@pytest.fixture
def memory() -> Memory:
    return Memory()


async def turns() -> None:
    for _ in range(20):
        await checkpoint()


@pytest.mark.anyio
class TestGroupSaver:
    async def test_save_returns_when_the_present_state_is_on_disk(self, disk: Disk, memory: Memory) -> None:
        saver = GroupSaver(disk, memory.content)
        async with running(saver.run):
            for memory.value in range(5):
                await saver.save()
                assert disk.read() == b"%d" % memory.value

    @pytest.mark.spec("DP-9.13")
    async def test_those_who_come_during_a_write_share_the_next(self, disk: Disk, memory: Memory) -> None:
        saver = GroupSaver(disk, memory.content)
        seen: list[bytes] = []

        async def change() -> None:
            memory.value += 1
            mine = memory.value
            await saver.save()
            assert int(disk.read() or b"0") >= mine
            seen.append(disk.read() or b"")

        disk.may_go_on.clear()
        async with running(saver.run), anyio.create_task_group() as tasks:
            tasks.start_soon(change)
            await disk.until_asked()
            for _ in range(63):
                tasks.start_soon(change)
            await turns()
            disk.may_go_on.set()
        assert disk.writes == [b"1", b"64"]
        assert seen == [b"1"] + [b"64"] * 63 or seen == [b"64"] * 64

    @pytest.mark.spec("DP-9.13")
    async def test_the_same_content_is_not_written_again(self, disk: Disk, memory: Memory) -> None:
        saver = GroupSaver(disk, memory.content)
        async with running(saver.run):
            for _ in range(3):
                await saver.save()
            memory.value = 1
            await saver.save()
            memory.value = 0
            await saver.save()
        assert disk.writes == [b"0", b"1", b"0"]

    async def test_a_failure_is_told_to_those_who_waited_for_it_and_the_next_save_tries_again(
        self, disk: Disk, memory: Memory
    ) -> None:
        saver = GroupSaver(disk, memory.content, clock=FakeClock())
        outcomes: list[DevletError | None] = []

        async def save() -> None:
            try:
                await saver.save()
            except Unavailable as e:
                outcomes.append(e)
            else:
                outcomes.append(None)

        disk.refuse()
        async with running(saver.run):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(save)
                tasks.start_soon(save)
            assert [str(e) for e in outcomes] == [f"{disk.path} cannot be written: Is a directory"] * 2
            assert outcomes[0] is not outcomes[1]
            disk.accept()
            await save()
        assert outcomes[2] is None
        assert disk.read() == b"0"

    async def test_the_problem_is_shown_from_a_failed_write_until_one_succeeds(
        self, disk: Disk, memory: Memory
    ) -> None:
        saver = GroupSaver(disk, memory.content, clock=FakeClock())
        disk.refuse()
        async with running(saver.run):
            assert not saver.problem
            with pytest.raises(Unavailable):
                await saver.save()
            assert saver.problem == f"{disk.path} cannot be written: Is a directory"
            disk.accept()
            await saver.save()
            assert not saver.problem

    async def test_a_removed_file_is_written_again_and_one_that_never_was_is_not(
        self, disk: Disk, memory: Memory
    ) -> None:
        saver = GroupSaver(disk, memory.content, clock=FakeClock())
        async with running(saver.run):
            assert await saver.restore() == ""
            await saver.save()
            assert await saver.restore() == ""
            saver.path.unlink()
            assert await saver.restore() == "removed file written again"
            assert disk.read() == b"0"
        saver.path.unlink()
        assert await saver.restore() == ""

    async def test_only_those_who_waited_for_the_write_that_failed_are_told(self, disk: Disk, memory: Memory) -> None:
        saver = GroupSaver(disk, memory.content, clock=FakeClock())
        failed: list[str] = []

        async def save(name: str) -> None:
            try:
                await saver.save()
            except Unavailable:
                failed.append(name)

        disk.refuse()
        disk.refuses_once = True
        disk.may_go_on.clear()
        async with running(saver.run), anyio.create_task_group() as tasks:
            tasks.start_soon(save, "first")
            await disk.until_asked()
            tasks.start_soon(save, "second")
            await turns()
            disk.may_go_on.set()
        assert failed == ["first"]
        assert disk.read() == b"0"

    async def test_one_who_stops_waiting_disturbs_nobody(self, disk: Disk, memory: Memory) -> None:
        saver = GroupSaver(disk, memory.content)
        disk.may_go_on.clear()
        async with running(saver.run), anyio.create_task_group() as others:
            async with anyio.create_task_group() as impatient:
                impatient.start_soon(saver.save)
                await disk.until_asked()
                memory.value = 1
                impatient.start_soon(saver.save)
                others.start_soon(saver.save)
                await turns()
                impatient.cancel_scope.cancel()
            disk.may_go_on.set()
        assert disk.writes == [b"0", b"1"]

    async def test_what_nobody_waits_for_is_written_soon(self, disk: Disk, memory: Memory) -> None:
        saver = GroupSaver(disk, memory.content)
        async with running(saver.run):
            saver.save_soon()
            await disk.until_asked()
        assert disk.read() == b"0"

    async def test_what_nobody_waits_for_is_tried_again_later_and_later_and_logged(
        self, disk: Disk, memory: Memory, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock = FakeClock()
        saver = GroupSaver(disk, memory.content, clock=clock)
        disk.refuse()
        async with running(saver.run):
            saver.save_soon()
            waits = []
            for tries in range(1, 8):
                await clock.sleeping(1)
                assert len(disk.writes) == tries
                saver.save_soon()  # does not hurry it
                waits.append(clock.wakes_at[0] - clock.monotonic())
                await clock.advance(waits[-1])
            assert all(low <= wait <= low * 1.1 for low, wait in zip((1, 2, 4, 8, 16, 30, 30), waits, strict=True))
            await clock.sleeping(1)
            disk.accept()
            await clock.advance(40)
            await disk_has(disk, b"0")
        assert {record.getMessage() for record in caplog.records} == {"checkpoint not written"}
        assert len(caplog.records) == len(disk.writes) - 1

    async def test_a_change_during_a_repeated_write_is_not_forgotten(self, disk: Disk, memory: Memory) -> None:
        clock = FakeClock()
        saver = GroupSaver(disk, memory.content, clock=clock)
        disk.refuse()
        async with running(saver.run):
            saver.save_soon()
            await disk.until_asked()
            await clock.sleeping(1)
            disk.accept()
            disk.may_go_on.clear()
            await clock.advance(2)
            await disk.until_asked()
            memory.value = 7
            saver.save_soon()
            disk.may_go_on.set()
            await disk.until_asked()
            await disk_has(disk, b"7")

    async def test_after_a_failed_save_the_disk_is_brought_up_to_date_by_itself(
        self, disk: Disk, memory: Memory
    ) -> None:
        clock = FakeClock()
        saver = GroupSaver(disk, memory.content, clock=clock)
        async with running(saver.run):
            await saver.save()
            disk.refuse()
            memory.value = 1
            with pytest.raises(Unavailable):
                await saver.save()
            memory.value = 0  # the caller takes its change back
            await clock.sleeping(1)
            disk.accept()
            await clock.advance(2)
            await disk_has(disk, b"0")

    async def test_what_is_wanted_when_the_saver_stops_is_written_first(self, disk: Disk, memory: Memory) -> None:
        saver = GroupSaver(disk, memory.content)
        async with running(saver.run):
            memory.value = 3
            saver.save_soon()
        assert disk.read() == b"3"
        with pytest.raises(Unavailable, match="devlet is stopping"):
            await saver.save()

    async def test_a_write_that_is_under_way_when_the_saver_stops_is_finished(self, disk: Disk, memory: Memory) -> None:
        saver = GroupSaver(disk, memory.content)

        async def release() -> None:
            await turns()
            disk.may_go_on.set()

        disk.may_go_on.clear()
        async with anyio.create_task_group() as waiters:
            async with running(saver.run):
                waiters.start_soon(saver.save)
                await disk.until_asked()
                waiters.start_soon(release)
        assert disk.read() == b"0"

    async def test_if_the_content_cannot_be_made_it_is_a_bug_and_those_who_wait_do_not_wait_for_ever(
        self, disk: Disk
    ) -> None:
        def content() -> bytes:
            raise ZeroDivisionError

        saver = GroupSaver(disk, content)
        outcome: list[str] = []

        async def save() -> None:
            try:
                await saver.save()
            except Unavailable as e:
                outcome.append(str(e))

        async with anyio.create_task_group() as waiters:
            with pytest.raises(BaseExceptionGroup) as e:
                async with running(saver.run):
                    waiters.start_soon(save)
                    await anyio.sleep_forever()
        assert e.group_contains(ZeroDivisionError)
        assert outcome == [f"{disk.path} is no longer written: devlet is stopping"]


async def disk_has(disk: Disk, content: bytes) -> None:
    with deadline():
        while not disk.path.is_file() or disk.read() != content:
            await anyio.to_thread.run_sync(lambda: None)


@pytest.mark.skipif(in_mount_namespace() is None, reason="no mount namespace for a small disk")
def test_a_full_disk_keeps_the_last_checkpoint_until_a_write_succeeds(root: Path) -> None:
    script = 'mount -t tmpfs -o size=4m tmpfs "$1" && exec "$2" "$3" "$1"'
    command = [*(in_mount_namespace() or []), "sh", "-c", script, "sh", str(root), sys.executable, str(SAVER)]
    run = subprocess.run(command, capture_output=True, env={**os.environ, "TMPDIR": "/tmp"}, timeout=120)
    assert run.returncode == 0, run.stderr.decode()
    facts: dict[str, Any] = msgspec.json.decode(run.stdout)
    assert facts["problems"] == [f"{root / 'checkpoint'} cannot be written: No space left on device"]
    assert facts["kept"] == facts["acknowledged"] > 500_000
    assert facts["names"] == ["ballast", "checkpoint"]
    assert facts["after"] == facts["acknowledged"] + 1


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """Kill the writer between any two steps. A temporary file may be left, which the next start removes."""
    file = CheckpointFile(tmp_path / "state")
    file.write(b"old")
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom devlet.kit import atomic_file\n"
        "from devlet.state.checkpoint_file import CheckpointFile\n"
        "os.replace = lambda *a: os.kill(os.getpid(), 9)\n"
        "CheckpointFile(Path(sys.argv[1])).write(b'new')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file.path)], capture_output=True)
    assert done.returncode == -9, done.stderr
    assert file.read() == b"old"
    assert len(os.listdir(tmp_path)) == 2
    file.prepare()
    assert os.listdir(tmp_path) == ["state"]
    assert atomic_file.remove_leftovers(file.path) == 0
