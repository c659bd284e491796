import subprocess
import sys
from pathlib import Path

import pytest

from devlet.testing import roots
from devlet.testing.roots import temporary_root


def test_a_root_is_private_short_and_removed_with_all_that_is_in_it() -> None:
    with temporary_root() as root:
        assert root.stat().st_mode & 0o777 == 0o700
        assert root.name.startswith("dv") and len(str(root)) < 30
        (root / "file").write_text("")
    assert not root.exists()


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(root: Path) -> None:
    program = "import os, sys; from devlet.testing.roots import temporary_root as made; from pathlib import Path"
    program += "\nwith made(Path(sys.argv[1])) as root:\n    print(root, flush=True); os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", program, str(root)], stdout=subprocess.PIPE, text=True, check=False)
    left, other = Path(killed.stdout.strip()), root / "dvd"
    other.mkdir()
    assert killed.returncode == -9 and left.is_dir()
    with temporary_root(root) as one, temporary_root(root) as two:
        assert {one, two, other} == set(root.iterdir())
    assert list(root.iterdir()) == [other]


def test_two_roots_are_two_directories() -> None:
    with temporary_root() as one, temporary_root() as two:
        assert one != two


def test_memory_is_used_if_there_is_room(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_root(root) as inside:
        assert inside.parent == root
    monkeypatch.setattr(roots, "ROOM", 1 << 60)
    with temporary_root(root) as elsewhere:
        assert elsewhere.parent != root


@pytest.mark.parametrize("name", ["missing", "file"])
def test_without_memory_to_write_to_it_is_on_disk(root: Path, name: str) -> None:
    (root / "file").write_text("")
    with temporary_root(root / name) as elsewhere:
        assert elsewhere.is_dir() and elsewhere.parent != root


def test_a_long_path_for_temporary_files_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = root / ("x" * 40)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with temporary_root(root / "missing") as elsewhere:
        assert elsewhere.parent == Path("/tmp")
