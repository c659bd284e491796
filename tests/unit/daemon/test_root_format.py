import json
import logging
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from devlet.daemon import root_format
from devlet.daemon.root_format import FILE, FORMAT, check, claim
from devlet.errors import InvalidInput, StateCorrupt
from devlet.objects.release import DEVLET


def write(root: Path, content: object) -> Path:
    path = root / FILE
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_claimed_root_states_its_format_and_the_release_that_needs_it(root: Path) -> None:
    claim(root)
    assert json.loads((root / FILE).read_text()) == {"format": FORMAT, "devlet": DEVLET}
    assert stat.S_IMODE((root / FILE).stat().st_mode) == 0o644
    check(root)


def test_a_root_of_the_same_format_is_not_written_to(root: Path) -> None:
    path = write(root, {"format": FORMAT, "devlet": "0.1.0-early", "more": [1]})
    before = path.read_bytes()
    claim(root)
    assert path.read_bytes() == before


def test_a_root_without_the_file_counts_as_the_first_format(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root_format, "FORMAT", 2)
    check(root)
    with caplog.at_level(logging.INFO):
        claim(root)
    assert [(each.message, each.__dict__["facts"]["before"]) for each in caplog.records] == [("root upgraded", 1)]
    assert json.loads((root / FILE).read_text())["format"] == 2


def test_a_root_of_an_earlier_format_is_raised_to_ours(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(root)
    monkeypatch.setattr(root_format, "FORMAT", 2)
    monkeypatch.setattr(root_format, "DEVLET", "0.2.0")
    check(root)
    claim(root)
    assert json.loads((root / FILE).read_text()) == {"format": 2, "devlet": "0.2.0"}


@pytest.mark.parametrize("refuse", [check, claim])
def test_a_root_of_a_newer_format_is_refused_with_both_numbers_and_the_release(
    root: Path, refuse: Callable[[Path], None]
) -> None:
    path = write(root, {"format": 7, "devlet": "3.1.4"})
    with pytest.raises(StateCorrupt) as refused:
        refuse(root)
    assert str(refused.value) == (
        f"root {root} was upgraded to format 7 by devlet 3.1.4; this is devlet {DEVLET}, which knows formats up to"
        f" {FORMAT}. Use devlet 3.1.4 or newer, or put back the copy of the root that was made before the upgrade."
    )
    assert [each.name for each in root.iterdir()] == [path.name]


@pytest.mark.parametrize("content", ["", "1", "{}", '{"format": "1"}', "\x00" * 64, '{"format": 1'])
def test_a_damaged_file_is_refused_with_what_to_do(root: Path, content: str) -> None:
    path = write(root, content)
    with pytest.raises(
        StateCorrupt, match=f"{FILE} is damaged: .* If no devlet newer than {DEVLET} has used this root"
    ):
        check(root)
    path.unlink()
    claim(root)
    check(root)


def test_a_file_that_cannot_be_read_or_written_is_refused(root: Path) -> None:
    (root / FILE).mkdir()
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        check(root)
    with pytest.raises(InvalidInput, match="cannot be written: No such file or directory"):
        claim(root / "gone")


def test_what_an_interrupted_claim_left_behind_is_removed(root: Path) -> None:
    (root / f".{FILE}.abc.tmp").touch()
    claim(root)
    assert [each.name for each in root.iterdir()] == [FILE]
