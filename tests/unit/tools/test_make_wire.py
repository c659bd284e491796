import shutil
from pathlib import Path

import pytest
from tools import make_wire


def test_the_committed_code_is_what_would_be_generated(tmp_path: Path) -> None:
    make_wire.generate(tmp_path)
    assert make_wire.differences(tmp_path) == []


def test_a_missing_and_a_changed_file_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, sources = tmp_path / "made", tmp_path / "src"
    wire = sources / "devlet" / "wire"
    shutil.copytree(make_wire.WIRE, wire, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(wire, made / "devlet" / "wire")
    monkeypatch.setattr(make_wire, "SOURCES", sources)
    monkeypatch.setattr(make_wire, "WIRE", wire)
    assert make_wire.differences(made) == []
    (wire / "podresources_v1" / "api_pb2.py").unlink()
    (wire / "pluginregistration" / "api_pb2.pyi").write_text("changed")
    assert make_wire.differences(made) == [
        "src/devlet/wire/pluginregistration/api_pb2.pyi: run `make wire`",
        "src/devlet/wire/podresources_v1/api_pb2.py: run `make wire`",
    ]
