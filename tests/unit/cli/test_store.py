import re
import shlex
from pathlib import Path

import pytest

from devlet.cli import main
from devlet.cluster.store import database_files
from devlet.daemon.root import LOCK_FILE
from devlet.kit import file_lock
from tests.unit.cluster.store.damaged_logs import crashed, flip_log


@pytest.fixture
def path(root: Path) -> Path:
    return root / "cluster.db"


def test_a_sound_database_is_reported_with_its_objects_and_version(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crashed(path, 3)
    assert main.run(["store", "check", "--root", str(path.parent)]) == 0
    assert capsys.readouterr().out == f"{path}: intact, 3 objects, version 103\n"
    assert main.run(["store", "repair", "--root", str(path.parent)]) == 0
    assert capsys.readouterr().out.endswith("There is nothing to repair.\n")


def test_a_database_without_a_mark_is_reported_as_such(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crashed(path, 3)
    database_files.mark(path).unlink()
    assert main.run(["store", "check", "--root", str(path.parent)]) == 0
    assert "There is no high-water mark yet" in capsys.readouterr().out


def test_the_advice_of_a_check_makes_the_database_sound(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crashed(path)
    flip_log(path, 0.5)
    assert main.run(["store", "check", "--root", str(path.parent)]) == 1
    error = capsys.readouterr().err
    assert re.search(r"error: .*cluster\.db is damaged: .* 130 are lost", error)
    (advice,) = re.findall(r"`devlet (.*?)`", error)
    assert main.run(shlex.split(advice)) == 0
    done = capsys.readouterr().out
    assert re.search(r"repaired with 1. objects; versions continue above \d{16}\n", done)
    assert re.search(r"^lost: versions 1.. to 130$", done, re.MULTILINE)
    assert len(re.findall(r"^kept: .*cluster\.db\.damaged-", done, re.MULTILINE)) == 3
    assert main.run(["store", "check", "--root", str(path.parent)]) == 0


def test_nothing_is_lost_if_the_damaged_log_was_copied_before(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crashed(path, checkpointed=True)
    flip_log(path, 0.5)
    assert main.run(["store", "repair", "--root", str(path.parent)]) == 0
    done = capsys.readouterr().out
    assert "repaired with 30 objects" in done
    assert "lost: nothing that was acknowledged" in done


@pytest.mark.parametrize("verb", ["check", "repair"])
def test_a_running_root_is_refused(path: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    crashed(path, 1)
    with file_lock.held(path.parent / LOCK_FILE):
        assert main.run(["store", verb, "--root", str(path.parent)]) == 1
    assert re.fullmatch(r"error: .* is in use by process \d+, .*: stop it first\n", capsys.readouterr().err)


def test_a_root_without_an_embedded_cluster_is_named(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["store", "check", "--root", str(path.parent)]) == 1
    assert f"{path.parent} has no embedded cluster" in capsys.readouterr().err
    assert list(path.parent.iterdir()) == []


def test_without_a_verb_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["store"]) == 0
    assert "repair" in capsys.readouterr().out
