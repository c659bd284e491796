import os
import subprocess
import sys
from pathlib import Path

import pytest

from devlet.errors import InUse, InvalidInput
from devlet.kit import file_lock

_HOLDER = """
import sys
from pathlib import Path
from devlet.kit import file_lock
with file_lock.held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_file_holds_our_process_id(tmp_path: Path) -> None:
    with file_lock.held(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_it_can_be_taken_again_once_released(tmp_path: Path) -> None:
    for _ in range(2):
        with file_lock.held(tmp_path / "lock"):
            assert (tmp_path / "lock").exists()


def test_a_second_holder_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with file_lock.held(tmp_path / "lock"), pytest.raises(InUse, match=f"process {os.getpid()}"):
        with file_lock.held(tmp_path / "lock"):
            pass


def test_another_process_is_named_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InUse) as caught, file_lock.held(lock):
            pass
        assert str(caught.value) == f"{tmp_path} is in use by process {other.pid}, which holds {lock}"
        other.kill()
    with file_lock.held(lock):
        assert lock.read_text() == f"{os.getpid()}\n"


def test_a_holder_that_left_no_process_id_is_another_process(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with file_lock.held(lock):
        lock.write_text("not a number")
        with pytest.raises(InUse, match="in use by another process"), file_lock.held(lock):
            pass


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="cannot be locked"), file_lock.held(tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()
