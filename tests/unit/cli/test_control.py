from pathlib import Path

import pytest

from devlet.cli import main


def error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main.run(["control", *arguments]) == 1
    return capsys.readouterr().err


def test_a_cluster_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Missing option '--kubeconfig'" in error(capsys)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert error(capsys, "--kubeconfig", str(tmp_path / "gone")).endswith(
        f"error: no kubeconfig: {tmp_path}/gone not found\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--controllers", "schedule"], "--controllers: unknown controller 'schedule': did you mean scheduler?"),
        (["--controllers", "namespace"], "--controllers: unknown controller 'namespace': expected some of"),
        (["--controllers", "-scheduler,-resourceclaim,-device-taint-eviction"], "selects nothing to run"),
        (["--controllers", ""], "--controllers: the list is empty: expected some of resourceclaim, "),
        (["--controllers", " , "], "--controllers: the list is empty"),
        (["--scheduler-name", ""], "--scheduler-name: '': a lowercase RFC 1123 subdomain must"),
        (["--scheduler-name", "a", "--scheduler-name", "B_c"], "--scheduler-name: 'B_c': a lowercase RFC 1123"),
        (["--lease-namespace", "Not/One"], "--lease-namespace: 'Not/One': a lowercase RFC 1123 label must"),
        (["--lease-namespace", ""], "--lease-namespace: '': a lowercase RFC 1123 label must"),
        (["--identity", " "], "--identity: the name is empty"),
        (["--kube-api-qps", "nan"], "Invalid value for '--kube-api-qps': nan is not a finite number of requests"),
        (["--kube-api-qps", "inf"], "Invalid value for '--kube-api-qps': inf is not a finite number of requests"),
        (["--kube-api-qps", "-1"], "Invalid value for '--kube-api-qps'"),
        (["--metrics-address", "here"], "--metrics-address: 'here' is not an address"),
        (["--leader-elect-lease-duration", "5s"], "expected retry < renew deadline < lease duration"),
        (["--log-format", "xml"], "Invalid value for '--log-format'"),
    ],
)
def test_a_bad_flag_value_is_refused(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text in error(capsys, "--kubeconfig", "k", *arguments)


def test_its_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["control", "--help"]) == 0
    assert "devlet control --kubeconfig /etc/devlet/control.kubeconfig" in capsys.readouterr().out
