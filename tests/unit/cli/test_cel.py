import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

D = 'device.attributes["gpu.example.com"]'
CASE = {"id": "one", "expression": "1 == 1", "device": {"driver": "a"}}


def test_an_expression_is_evaluated_on_the_devices_of_files(run: "Run", cluster: Path) -> None:
    assert run("cel", "eval", f'{D}.model == "l4"', "-f", str(cluster)) == 0
    assert run.out.splitlines()[0].split() == ["DEVICE", "RESULT", "COST"]
    assert "gpu.example.com/n2/gpu-0   true" in run.out
    assert "attribute gpu.example.com/model exists in" in run.out


def test_filters_choose_devices_and_a_single_one_gets_a_tree(run: "Run", cluster: Path) -> None:
    arguments = ["cel", "eval", f'{D}.model == "l4"', "-f", str(cluster), "--node", "n2", "--driver", "gpu.example.com"]
    assert run(*arguments) == 0
    assert run.out.splitlines()[2] == f'    {D}.model = "l4"'
    assert run(*arguments, "--no-tree") == 0
    assert run.out.startswith("DEVICE")
    assert run(*arguments, "--device", "lost") == 1
    assert run.err.startswith("error: no device matches --driver, --device and --node")


def test_an_expression_comes_from_a_file_or_standard_input(
    run: "Run", cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.cel").write_text('device.driver ==\n "gpu.example.com"\n')
    assert run("cel", "eval", f"@{tmp_path / 'a.cel'}", "-f", str(cluster)) == 0
    assert "3 of 3" in run.out or "4 of 4" in run.out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"false")))
    assert run("cel", "eval", "-", "-f", str(cluster)) == 0
    assert "0 of " in run.out
    (tmp_path / "b.cel").write_bytes(b"\xff")
    assert run("cel", "eval", f"@{tmp_path / 'b.cel'}", "-f", str(cluster)) == 1
    assert run.err == f"error: {tmp_path / 'b.cel'}: the expression is not UTF-8 text\n"


def test_the_selectors_of_an_object_are_evaluated(run: "Run", cluster: Path) -> None:
    assert run("cel", "eval", "--claim", "two-big", "-f", str(cluster)) == 0
    assert run.out.startswith(
        "# ResourceClaimTemplate default/two-big: spec.spec.devices.requests[0].exactly.selectors"
    )
    assert run("cel", "eval", "--class", "lost", "-f", str(cluster)) == 1
    assert run.err == 'error: no selectors found: device class "lost" does not exist or has no selectors\n'


def test_what_does_not_compile_is_shown_and_the_exit_code_is_1(run: "Run", cluster: Path) -> None:
    assert run("cel", "eval", "device.lost", "-f", str(cluster)) == 1
    assert run.out.splitlines() == [
        "compilation failed: ERROR: <input>:1:7: undefined field 'lost'",
        " | device.lost",
        " | ......^",
    ]


def test_releases_are_compared(run: "Run", cluster: Path) -> None:
    arguments = ["cel", "eval", "[2, 1].sort() == [1, 2]", "-f", str(cluster), "--kube-version", "1.34,1.35"]
    assert run(*arguments) == 1
    assert [line.split()[:2] for line in run.out.splitlines()[1:3]] == [["1.34", "no"], ["1.35", "yes"]]
    assert run(*arguments, "--stored") == 0
    assert run(*arguments, "--kube-version", "2.0") == 1
    assert run.err.startswith('error: --kube-version "2.0": expected versions from 1.31')
    assert run(*arguments, "--feature-gates", "x") == 1


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_a_document_has_the_evaluations(output: str, run: "Run", cluster: Path) -> None:
    assert run("cel", "eval", "true", "-f", str(cluster), "-o", output) == 0
    (found,) = (json.loads(run.out) if output == "json" else yaml.safe_load(run.out))["evaluations"]
    assert found["counts"]["true"] == len(found["devices"])
    assert run("cel", "eval", "true", "-f", str(cluster), "-o", "xml") == 1
    assert run.err == 'error: unknown output format "xml": expected wide, json or yaml\n'


def test_devices_and_selectors_come_from_the_running_devlet(run: "Run", api: "API") -> None:
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "devices": [{"name": "gpu-0"}]}
    api.put("/apis/resource.k8s.io/v1/resourceslices/s1", {"spec": spec})
    selectors = [{"cel": {"expression": 'device.driver == "x"'}}]
    api.put("/apis/resource.k8s.io/v1/deviceclasses/gpu", {"spec": {"selectors": selectors}})
    assert run("cel", "eval", "--class", "gpu") == 0
    assert "gpu.example.com/gpu-0: false" in run.out
    assert run("cel", "lint") == 0
    assert "DeviceClass gpu: spec.selectors[0]:1:1: warning: matches none of 1 devices" in run.out


def test_one_thing_to_evaluate_must_be_said(run: "Run") -> None:
    assert run("cel", "eval") == 1
    assert run.err.startswith("error: give exactly one of EXPRESSION, --class NAME, --claim NAME and --cases FILE")
    assert run("cel", "eval", "true", "--class", "a") == 1


def test_cases_are_answered_one_line_each(run: "Run", tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([CASE, {**CASE, "id": "two", "expression": "device.lost"}]))
    assert run("cel", "eval", "--cases", str(tmp_path / "cases.json")) == 0
    first, second = map(json.loads, run.out.splitlines())
    assert first == {
        "id": "one",
        "result": True,
        "estimatedCost": 1,
        "exceedsEstimateLimit": False,
        "actualCost": 1,
    }
    assert second["result"] == "compile-error"


def test_a_case_that_cannot_be_read_is_named_and_the_others_are_answered(
    run: "Run", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps([{"id": "bad"}, CASE]).encode())))
    assert run("cel", "eval", "--cases", "-") == 1
    assert run.err == "error: standard input: case 'bad': expression is missing\n"
    assert json.loads(run.out)["id"] == "one"


def test_lint_prints_findings_like_a_linter(run: "Run", cluster: Path) -> None:
    (cluster / "bad.yaml").write_text(
        "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: bad}, "
        "spec: {selectors: [{cel: {expression: device.lost}}]}}"
    )
    assert run("cel", "lint", "-f", str(cluster)) == 1
    place = f"{cluster / 'bad.yaml'}, document 1: DeviceClass bad: spec.selectors[0]"
    assert f"{place}:1:7: error: undefined field 'lost'\n" in run.out
    assert " selectors, " in run.err
    assert run("cel", "lint", "-f", str(cluster), "-o", "json", "--kube-version", "1.34,1.36") == 1
    found = json.loads(run.out)
    assert {finding["kubeVersion"] for finding in found["findings"]} == {"1.34", "1.36"}
    assert run("cel", "lint", "-f", str(cluster), "-o", "wide") == 1


def test_help_has_examples(run: "Run", capsys: pytest.CaptureFixture[str]) -> None:
    from devlet.cli import main

    for arguments in (["cel"], ["cel", "eval", "--help"], ["cel", "lint", "--help"]):
        assert main.run(arguments) == 0
        assert "Example" in capsys.readouterr().out
