"""CDI directories are seen as runtimes see them, and watched for what is written there."""

import json
from pathlib import Path

import pytest

from devlet.errors import NotFound
from devlet.sanity.cdi_directories import CdiDirectories

DEVICE = {"name": "red", "containerEdits": {"env": ["LED=red"]}}
SPEC = json.dumps({"cdiVersion": "0.3.0", "kind": "v.com/led", "devices": [DEVICE]})


def test_devices_are_found_or_it_is_said_why_not(tmp_path: Path) -> None:
    (tmp_path / "led.json").write_text(SPEC)
    cdi = CdiDirectories([tmp_path, tmp_path / "missing"])
    assert [str(each.name) for each in cdi.devices(["v.com/led=red"])] == ["v.com/led=red"]
    with pytest.raises(NotFound, match="no such device"):
        cdi.devices(["v.com/led=green"])


def test_all_files_count_also_those_that_no_runtime_reads(tmp_path: Path) -> None:
    (tmp_path / ".led.json.tmp").write_text(SPEC)
    assert CdiDirectories([tmp_path]).files() == {tmp_path / ".led.json.tmp"}


def test_what_is_written_in_place_is_seen_and_what_is_renamed_is_not(tmp_path: Path) -> None:
    with CdiDirectories([tmp_path]).watched() as traffic:
        (tmp_path / "draft").write_text(SPEC)
        (tmp_path / "draft").rename(tmp_path / "good.json")
        (tmp_path / "bad.json").write_text(SPEC)
    assert traffic.written == {tmp_path / "bad.json"}


def test_files_of_others_do_not_count_where_others_write(tmp_path: Path) -> None:
    common, own = tmp_path / "common", tmp_path / "own"
    for folder in (common, own):
        folder.mkdir()
        (folder / "broken.json").write_text("{}")
    (common / "claim-11-22.json").write_text("{}")
    (common / "more.json").write_text('{"kind": "11-22"}')
    cdi = CdiDirectories([common, own], lambda: {"11-22"})
    assert cdi.files() == {own / "broken.json", common / "claim-11-22.json", common / "more.json"}
    assert set(cdi.errors()) == cdi.files()
    assert len(cdi.now().errors) == 4
