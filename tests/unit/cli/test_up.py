from pathlib import Path

import pytest

from devlet.cli import main


def test_a_bad_flag_value_is_refused_in_our_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["up", "--log-format", "xml"]) == 1
    assert capsys.readouterr().err == "error: --log-format: 'xml' is not a log format: expected text or json\n"


def test_a_missing_configuration_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["up", "--config", str(tmp_path / "gone.yaml")]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/gone.yaml: No such file or directory\n"


def test_a_kubeconfig_that_is_not_there_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["up", "--root", str(root), "--node-name", "n", "--kubeconfig", str(root / "gone")]) == 1
    assert capsys.readouterr().err.endswith(f"error: no kubeconfig: {root}/gone not found\n")


def test_what_is_of_the_embedded_cluster_is_refused_for_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["up", "--kubeconfig", "k", "--controllers", "*"]) == 1
    assert capsys.readouterr().err == (
        "error: --controllers: applies only to the embedded cluster and cannot be combined with --kubeconfig:"
        " use `devlet control` to run controllers for another cluster\n"
    )
