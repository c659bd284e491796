from pathlib import Path

import pytest

from devlet.cli import main


def test_a_bad_flag_value_is_refused_in_our_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["up", "--log-format", "xml"]) == 1
    assert capsys.readouterr().err == "error: --log-format: 'xml' is not a log format: expected text or json\n"


def test_a_missing_configuration_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["up", "--config", str(tmp_path / "gone.yaml")]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/gone.yaml: No such file or directory\n"
