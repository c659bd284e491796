import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from devlet.cli import main
from tests.support.problems.generator import bench_problem, symmetric_problem

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


class Run:
    """`run("-f", "file")`, then `.out` and `.err` have what it printed."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = self.err = ""

    def __call__(self, *arguments: str | Path) -> int:
        code = main.run(["simulate", *map(str, arguments)])
        self.out, self.err = self._capture.readouterr()
        return code

    @property
    def rows(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


def test_the_table_says_where_everything_goes_and_why_not(run: Run, cluster: Path) -> None:
    assert run("-f", cluster) == 0
    assert run.rows[0] == ["NAME", "NODE", "DEVICES", "CAUSE"]
    assert run.rows[1][:4] == ["pod/big", "<none>", "<none>", "0/2"]
    assert run.rows[2] == ["claim/any", "n1", "gpu-1"]
    assert run.err == "Pods and claims that already have their devices: 1\n"


def test_files_may_come_one_by_one_or_on_standard_input(
    run: Run, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (cluster / "wishes.yaml").open() as wishes:
        monkeypatch.setattr("sys.stdin", wishes)
        assert run("-f", cluster / "cluster.yaml", "-f", "-") == 0
    assert run.rows[2] == ["claim/any", "n1", "gpu-1"]


def test_one_node_may_be_asked_for(run: Run, cluster: Path) -> None:
    assert run("-f", cluster, "--node", "n2", "--no-headers") == 0
    assert run.rows[1] == ["claim/any", "n2", "gpu-0"]
    assert run("-f", cluster, "--node", "n3") == 1
    assert run.err == 'error: node "n3" not found\n'


def test_the_wide_table_has_requests_drivers_and_pools(run: Run, cluster: Path) -> None:
    assert run("-f", cluster, "-o", "wide") == 0
    assert run.rows[2] == ["claim/any", "n1", "gpu=gpu.example.com/n1/gpu-1"]


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_claims_are_printed_with_their_allocation(run: Run, cluster: Path, format: str) -> None:
    assert run("-f", cluster, "-o", format) == 0
    found = json.loads(run.out) if format == "json" else yaml.safe_load(run.out)
    devices = {
        each["metadata"]["name"]: [
            result["device"] for result in each["status"].get("allocation", {}).get("devices", {}).get("results", [])
        ]
        for each in found["items"]
    }
    assert devices == {"training": ["gpu-0"], "any": ["gpu-1"], "big-gpu": []}
    assert run.err.startswith("pod/big: 0/2 nodes")


def test_what_was_printed_can_be_read_again(run: Run, cluster: Path, tmp_path: Path) -> None:
    assert run("-f", cluster, "-o", "yaml") == 0
    again = tmp_path / "again.yaml"
    again.write_text(run.out)
    assert run("-f", again, "-f", cluster / "cluster.yaml") == 0, run.err
    assert [row[0] for row in run.rows] == ["NAME", "claim/big-gpu"]


def test_nodes_are_invented_from_slices_and_that_is_said(run: Run, cluster: Path) -> None:
    text = (cluster / "cluster.yaml").read_text().splitlines()
    (cluster / "cluster.yaml").write_text("\n".join(line for line in text if "kind: Node," not in line))
    assert run("-f", cluster) == 0
    assert run.rows[2] == ["claim/any", "n1", "gpu-1"]
    assert run.err.startswith("No nodes given: using the nodes that slices name, without labels: n1, n2\n")


def test_claims_alone_have_no_nodes(run: Run, cluster: Path) -> None:
    assert run("-f", cluster / "wishes.yaml") == 1
    assert run.err == "error: there are no nodes, and no slice names one: add nodes, as in -f nodes.yaml\n"


def test_problems_are_answered_line_by_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "problems.jsonl"
    problems = [symmetric_problem(2, 1), bench_problem(2, 4, mode="fill")]
    file.write_text("".join(json.dumps(problem) + "\n" for problem in problems))
    assert run("--problems", file) == 0
    answers = [json.loads(line) for line in run.out.splitlines()]
    assert [set(answer) for answer in answers] == [{"name", "answers"}, {"name", "placed", "seconds"}]
    assert run("--problems", file, "--bench", "--improved", "--timeout", "1s") == 0
    assert "seconds" in json.loads(run.out.splitlines()[0])


def test_a_line_that_is_wrong_makes_the_exit_code_one(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "problems.jsonl"
    file.write_text("oops\n" + json.dumps(symmetric_problem(2, 1)) + "\n")
    assert run("--problems", file) == 1
    assert len(run.out.splitlines()) == 1
    assert run.err.startswith(f"error: {file}:1: not JSON")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--problems", "nowhere"], "nowhere: No such file or directory"),
        (["--problems", "."], ".: Is a directory"),
        (["-f", "nowhere"], "nowhere: No such file or directory"),
        (["-f", "x", "-o", "name"], 'output format "name": expected json, yaml or wide'),
        (["-f", "x", "--bench"], "--bench can be used only with --problems"),
        (["-f", "x", "--timeout", "soon"], "soon"),
    ],
)
def test_wrong_usage_is_an_error(run: Run, arguments: list[str], error: str) -> None:
    assert run(*arguments) == 1
    assert run.err.startswith("error: ") and error in run.err


def test_kubernetes_stops_at_a_selector_that_fails_and_devlet_does_not(run: Run, cluster: Path) -> None:
    claim = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: speedy}
spec:
  devices:
    requests:
    - name: r
      exactly:
        deviceClassName: gpu
        selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].%s == "l4"'}}]
"""
    cluster.joinpath("speedy.yaml").write_text(claim % "speed")
    assert run("-f", cluster) == 0
    assert "no such key: speed" in next(line for line in run.out.splitlines() if "speedy" in line)
    cluster.joinpath("cluster.yaml").write_text(
        cluster.joinpath("cluster.yaml")
        .read_text()
        .replace("gpu-2, attributes: {", "gpu-2, attributes: {speed: {string: l4}, ")
    )
    assert run("-f", cluster, "--improved") == 0
    assert ["claim/speedy", "n1", "gpu-2"] in run.rows


def test_a_running_devlet_can_be_asked(run: Run, api: "API", cluster: Path) -> None:
    api.put("/api/v1/nodes/n7", {})
    assert run("-f", cluster, "--root", api.root, "--node", "n7") == 0
    assert run.rows[2][:2] == ["claim/any", "<none>"]
    assert {method for method, _, _ in api.requests} == {"GET"}
