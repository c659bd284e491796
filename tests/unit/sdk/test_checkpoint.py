import os
import random
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from devlet.errors import DevletError, InvalidInput, StateCorrupt, Unavailable
from devlet.sdk.checkpoint import Checkpoint
from devlet.testing.fake_clock import FakeClock
from tests.support.small_disk import in_mount_namespace

SAVER = Path(__file__).with_name("checkpoint_saver.py")
FULL_DISK = Path(__file__).with_name("checkpoint_full_disk.py")


class Led(Struct, frozen=True):
    name: str
    level: int = 0


class Leds(Struct, frozen=True):
    leds: dict[str, Led]
    seen: tuple[bytes, ...] = ()
    note: str | None = None


numbers = st.integers(-(2**63), 2**63 - 1)
words = st.text(st.characters(exclude_categories=["Cs"]))
leds = st.builds(
    Leds,
    leds=st.dictionaries(words, st.builds(Led, words, numbers)),
    seen=st.lists(st.binary()).map(tuple),
    note=st.none() | words,
)
SOME = Leds({"a": Led("red", 7), "b": Led("grün", 3)}, (b"\0\xff",), "note")


@given(leds)
def test_what_was_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, value: Leds) -> None:
    path = tmp_path_factory.mktemp("c") / "state"
    Checkpoint(path, Leds).save(value)
    assert Checkpoint(path, Leds).load() == value


@pytest.mark.parametrize("value", [[1, 2], {"a": {"b": None}}, "text", 7, None, [[]]])
def test_any_type_can_be_kept(tmp_path: Path, value: Any) -> None:
    Checkpoint(tmp_path / "state", Any).save(value)
    assert Checkpoint(tmp_path / "state", Any).load() == value


def test_before_anything_was_saved_there_is_nothing(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "new" / "state", Leds).load() is None
    assert os.listdir(tmp_path) == []


def test_it_is_for_its_owner_alone_and_nothing_else_is_left(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new" / "state", Leds)
    checkpoint.save(SOME)
    checkpoint.save(SOME)
    assert os.listdir(tmp_path / "new") == ["state"]
    assert stat.S_IMODE(checkpoint.path.stat().st_mode) == 0o600


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "state", dict[str, int], kind="brightness", version=3).save({"red": 7})
    document = msgspec.json.decode((tmp_path / "state").read_bytes())
    assert len(document.pop("checksum")) == 64
    assert document == {"kind": "brightness", "version": 3, "data": {"red": 7}}


@given(st.data())
def test_whatever_happens_to_a_file_it_is_never_read_as_something_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("c") / "state"
    Checkpoint(path, Leds).save(SOME)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        del content[place:]
    path.write_bytes(content)
    try:
        assert Checkpoint(path, Leds).load() == SOME  # it was a space, or the like
    except StateCorrupt as e:
        assert str(path) in str(e)
        [kept] = [each for each in path.parent.iterdir() if "damaged" in each.name]
        assert kept.read_bytes() == content


def test_a_damaged_file_is_set_aside_and_reported_and_a_new_one_starts_empty(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "state", Leds, clock=FakeClock())
    checkpoint.save(SOME)
    damaged = checkpoint.path.read_bytes().replace(b'"red"', b'"bed"')
    checkpoint.path.write_bytes(damaged)
    with pytest.raises(StateCorrupt) as e:
        checkpoint.load()
    [aside] = tmp_path.iterdir()
    assert str(e.value) == (
        f"{checkpoint.path} is damaged (its checksum does not match its content). "
        f"It is kept as {aside}; a new one begins empty."
    )
    assert aside.read_bytes() == damaged
    assert checkpoint.load() is None
    checkpoint.save(SOME)
    assert checkpoint.load() == SOME
    assert len(list(tmp_path.iterdir())) == 2


def test_data_of_another_type_counts_as_damaged(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "state", dict[str, int], kind="k").save({"leds": 1})
    with pytest.raises(StateCorrupt, match=r"damaged \(ValidationError: Expected `object`, got `int`"):
        Checkpoint(tmp_path / "state", Leds, kind="k").load()


@pytest.mark.parametrize(
    ("kind", "version", "text"),
    [
        ("other", 1, "is a checkpoint of kind 'other', not 'mine': use another path, or move the file away"),
        ("mine", 3, "has version 3, and this driver knows 2: run the newer driver again, or move the file away"),
    ],
)
def test_a_file_of_others_is_neither_read_nor_overwritten(tmp_path: Path, kind: str, version: int, text: str) -> None:
    path = tmp_path / "state"
    Checkpoint(path, int, kind=kind, version=version).save(7)
    before = path.read_bytes()
    checkpoint = Checkpoint(path, int, kind="mine", version=2)
    for act in (checkpoint.load, lambda: checkpoint.save(8)):
        with pytest.raises(StateCorrupt, match=text):
            act()
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["state"])
    path.unlink()
    assert checkpoint.load() is None
    checkpoint.save(8)


def test_older_versions_are_brought_up_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "state"
    Checkpoint(path, list[str], kind="leds").save(["red"])
    upgrades = {1: lambda names: dict.fromkeys(names, 0), 2: lambda levels: {"levels": levels}}
    newest = Checkpoint(path, dict[str, dict[str, int]], kind="leds", version=3, upgrades=upgrades)
    assert newest.load() == {"levels": {"red": 0}}
    newest.save({"levels": {"red": 1}})
    assert newest.load() == {"levels": {"red": 1}}


def test_an_older_version_without_an_upgrade_is_set_aside(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "state", int, kind="k").save(1)
    with pytest.raises(StateCorrupt, match=r"damaged \(KeyError: 1\)"):
        Checkpoint(tmp_path / "state", int, kind="k", version=2).load()


@pytest.mark.long
@pytest.mark.crash
def test_a_process_that_is_killed_while_it_saves_loses_nothing_that_it_has_acknowledged(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    path, saved = tmp_path / "state", 0
    for _ in range(8):
        command = [sys.executable, str(SAVER), str(path), str(saved + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(moments.randrange(1, 60)):
                saved = int(process.stdout.readline())
            process.kill()
            rest = process.stdout.read().split(b"\n")[:-1]
        acknowledged = int(rest[-1]) if rest else saved
        found = Checkpoint(path, list[int], kind="numbers").load()
        assert found in ([acknowledged] * (acknowledged % 500), [acknowledged + 1] * ((acknowledged + 1) % 500)), seed
        saved = acknowledged + 1
    Checkpoint(path, list[int], kind="numbers").save([])
    assert os.listdir(tmp_path) == ["state"], "unfinished files stay behind"


@pytest.mark.skipif(in_mount_namespace() is None, reason="no mount namespace for a small disk")
def test_on_a_full_disk_the_last_saved_state_stays_and_the_error_says_so(root: Path) -> None:
    script = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" "$3" "$1"'
    command = [*(in_mount_namespace() or []), "sh", "-c", script, "sh", str(root), sys.executable, str(FULL_DISK)]
    run = subprocess.run(command, capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr.decode()
    facts = msgspec.json.decode(run.stdout)
    assert facts["problem"] == f"{root / 'state'} cannot be written: No space left on device; make room on that disk"
    assert facts["kept"] == facts["size"] > 0
    assert facts["names"] == ["state"]


def test_an_obstacle_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = Checkpoint(tmp_path / "file" / "state", int)
    with pytest.raises(Unavailable, match=r"state cannot be written: .*; "):
        below.save(1)
    assert below.load() is None, "nothing can have been saved there"
    (tmp_path / "directory").mkdir()
    with pytest.raises(DevletError, match=r"directory"):
        Checkpoint(tmp_path / "directory", int).load()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="is not a file; move it away"):
        Checkpoint(tmp_path / "pipe", int).load()
