"""The benchmarks run, and docs/contributing/performance.md shows every measure."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".cache" / "peers" / "bin"


def bench(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "bench" / script, "--quick", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(report: Path) -> dict[str, dict[str, Any]]:
    return {row["what"]: row for row in json.loads(report.read_text())["rows"]}


def loaded(script: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{script}", ROOT / "bench" / f"{script}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_every_script_that_make_bench_runs_is_on_the_page() -> None:
    scripts = [path.name for path in sorted((ROOT / "bench").glob("*.py")) if not path.name.startswith("_")]
    page = (ROOT / "docs" / "contributing" / "performance.md").read_text()
    assert scripts and [name for name in scripts if f"bench/{name}" not in page] == []


def test_every_measure_of_the_store_is_on_the_page() -> None:
    page = (ROOT / "docs" / "contributing" / "performance.md").read_text()
    shown = [measure.what for measure in loaded("store").measures(1000, 100)]
    assert [what for what in shown if what not in page] == []


def test_every_measure_of_the_api_is_on_the_page() -> None:
    page, api = (ROOT / "docs" / "contributing" / "performance.md").read_text(), loaded("api")
    shown = [api.START, api.IDLE_MEMORY, api.PEAK_MEMORY, *(measure.what for measure in api.measures(1000, (10, 100)))]
    assert [what for what in shown if what not in page] == []


def test_every_measure_of_admission_is_on_the_page() -> None:
    page = (ROOT / "docs" / "contributing" / "performance.md").read_text()
    shown = [measure.what for measure in loaded("admission").measures(256)]
    assert [what for what in shown if what not in page] == []


def test_every_measure_of_preparing_claims_is_on_the_page() -> None:
    page = (ROOT / "docs" / "contributing" / "performance.md").read_text()
    shown = [measure.how for measure in loaded("prepare").measures(256)]
    assert [how for how in shown if how not in page] == []


def test_every_measure_of_a_node_for_a_test_is_on_the_page() -> None:
    page = (ROOT / "docs" / "contributing" / "performance.md").read_text()
    assert [what for what in loaded("fixture").MEASURES if what not in page] == []


def test_every_measure_of_a_node_over_time_is_on_the_page() -> None:
    page = (ROOT / "docs" / "contributing" / "performance.md").read_text()
    assert [what for what in loaded("churn").MEASURES if what not in page] == []


def test_every_workload_of_scheduling_is_on_the_page_and_has_its_bars() -> None:
    page, schedule = (ROOT / "docs" / "contributing" / "performance.md").read_text(), loaded("schedule")
    assert [workload.name for workload in schedule.FULL if workload.name not in page] == []
    rows = {workload.row(system) for workload in schedule.FULL for system in schedule.SYSTEMS}
    assert set(schedule.BARS) == rows


def test_the_kept_share_of_a_rate_compares_the_most_pods_in_place_with_the_fewest() -> None:
    admission = loaded("admission")
    rates = {10: [50.0, 60.0, 70.0], 0: [100.0, 200.0], 5: [1.0]}
    rows = {admission.Measure(n, 64, 1): admission.Row("", "/s", runs={"devlet": runs}) for n, runs in rates.items()}
    assert admission.kept(rows, "devlet", 64) == 60 / 150
    assert admission.kept(rows, "devlet", 1) is None
    assert admission.kept(rows, "kubelet", 64) is None


@pytest.mark.long
@pytest.mark.parametrize("only", ["claims, 16 writers", "list", "watch events of claims"])
def test_the_store_benchmark_runs_without_etcd(only: str, root: Path) -> None:
    report = root / "report.json"
    done = bench("store.py", "--alone", "--count=8", f"--only={only}", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    assert "devlet" in done.stdout
    assert all(figure > 0 for row in rows(report).values() for figure in row["runs"]["devlet"])


def need(*programs: str) -> None:
    """Skip the test if a program is not built, or fail it where the programs are required."""
    missing = [name for name in programs if not (PEERS / name).is_file()]
    if missing and (os.environ.get("CI") or os.environ.get("DEVLET_PEERS") == "required"):
        pytest.fail(f"{', '.join(missing)} not built: run `make peers`", pytrace=False)
    if missing:
        pytest.skip(f"{', '.join(missing)} not built: run `make peers`")


@pytest.mark.peers
def test_the_store_benchmark_sets_etcd_beside_us(root: Path) -> None:
    need("bench-etcd", "etcd")
    report = root / "report.json"
    done = bench("store.py", "--count=8", "--only=slices, 16 writers", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    (row,) = rows(report).values()
    assert set(row["runs"]) == {"devlet", "etcd"}
    assert row["ratios"]["etcd"] > 0


@pytest.mark.peers
@pytest.mark.parametrize("sides", [["--alone"], []], ids=["alone", "beside"])
def test_the_api_benchmark_runs(root: Path, sides: list[str]) -> None:
    need("bench-api", "etcd", "kube-apiserver")
    report = root / "report.json"
    done = bench("api.py", *sides, "--count=10", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    found = rows(report)
    assert {"start to ready", "list of 50 slices", "creates of slices in protobuf, 16 writers"} <= set(found)
    for row in found.values():
        assert len(row["runs"]) == (1 if sides else 2)
        assert all(figure > 0 for figures in row["runs"].values() for figure in figures)


@pytest.mark.peers
@pytest.mark.parametrize("sides", [["--alone"], []], ids=["alone", "beside"])
def test_the_admission_benchmark_runs(root: Path, sides: list[str]) -> None:
    need("kubelet-devices")
    report = root / "report.json"
    done = bench("admission.py", *sides, "--pods=8", "--existing=3", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    found = rows(report)
    assert set(found) == {"pods admitted, one after the other, 3 in place", "pods admitted, 64 at once, 3 in place"}
    for row in found.values():
        assert set(row["runs"]) == {"devlet", "file writes"} | (set() if sides else {"kubelet"})
        assert all(figure > 0 for figures in row["runs"].values() for figure in figures)


@pytest.mark.peers
@pytest.mark.parametrize("sides", [["--alone"], []], ids=["alone", "beside"])
def test_the_benchmark_of_preparing_claims_runs(root: Path, sides: list[str]) -> None:
    need("kubelet-claims")
    report = root / "report.json"
    done = bench("prepare.py", *sides, "--pods=8", "--existing=3", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    found = rows(report)
    for what in ("claims prepared", "claims unprepared", "writes per pod"):
        for how in ("one after the other, 3 in place", "64 at once, 3 in place"):
            assert {"devlet"} | (set() if sides else {"kubelet"}) <= set(found[f"{what}, {how}"]["runs"])
            assert all(figure > 0 for figures in found[f"{what}, {how}"]["runs"].values() for figure in figures)
    assert found["writes per pod, one after the other, 3 in place"]["runs"]["devlet"] == [3]
    assert found["writes per pod, 64 at once, 3 in place"]["runs"]["devlet"][0] < 3
    assert found["writes per pod, one after the other, 3 in place, no claims"]["runs"]["devlet"] == [0]


@pytest.mark.long
def test_the_benchmark_of_nodes_for_tests_runs(root: Path) -> None:
    report = root / "report.json"
    done = bench("fixture.py", "--repetitions=1", f"--json={report}")
    assert done.returncode == 0, done.stderr
    found = rows(report)
    assert list(found) == list(loaded("fixture").MEASURES)
    assert found["start of one node"]["ratios"]["devlet up"] > 0
    assert all(figure > 0 for row in found.values() for figures in row["runs"].values() for figure in figures)


@pytest.mark.long
def test_the_benchmark_of_a_node_over_time_runs(root: Path) -> None:
    report = root / "report.json"
    done = bench("churn.py", "--pods=12", "--alive=5", f"--json={report}")
    assert done.returncode == 0, done.stderr
    assert sorted(rows(report)) == sorted(loaded("churn").MEASURES)


def test_the_allocation_benchmark_runs_without_the_reference(root: Path) -> None:
    report = root / "report.json"
    done = bench("alloc.py", "--alone", "--only=fill, 100 nodes", f"--json={report}")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(report.read_text())["rows"]
    assert row["what"].startswith("claims placed, fill, 100 nodes") and row["runs"]["devlet"][0] > 0


@pytest.mark.peers
def test_the_allocation_benchmark_sets_the_reference_beside_us(root: Path) -> None:
    need("dra-allocate", "dra-cel")
    report = root / "report.json"
    done = bench("alloc.py", "--seconds=2", "--only=a quantity", f"--json={report}")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(report.read_text())["rows"]
    assert set(row["runs"]) == {"devlet", "kube-scheduler"}


@pytest.mark.long
def test_the_scheduling_benchmark_runs_without_the_reference(root: Path) -> None:
    report = root / "report.json"
    done = bench("schedule.py", "--alone", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    (row,) = rows(report).values()
    assert row["what"].endswith("embedded") and row["runs"]["devlet"][0] > 0


@pytest.mark.peers
def test_the_scheduling_benchmark_sets_the_reference_beside_us(root: Path) -> None:
    need("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    report = root / "report.json"
    done = bench("schedule.py", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    found = rows(report)
    assert [what.rpartition(", ")[2] for what in found] == ["embedded", "on kube-apiserver"]
    assert all(row["ratios"]["kube-scheduler"] > 0 for row in found.values())
