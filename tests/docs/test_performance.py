"""The benchmarks run, and the page about them shows what they show."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".cache" / "peers" / "bin"


def bench_store(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "bench" / "store.py", "--quick", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(report: Path) -> dict[str, dict[str, Any]]:
    return {row["what"]: row for row in json.loads(report.read_text())["rows"]}


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_store", ROOT / "bench" / "store.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_every_script_that_make_bench_runs_is_on_the_page() -> None:
    scripts = [path.name for path in sorted((ROOT / "bench").glob("*.py")) if not path.name.startswith("_")]
    page = (ROOT / "docs" / "performance.md").read_text()
    assert scripts and [name for name in scripts if f"bench/{name}" not in page] == []


def test_every_measure_of_the_store_is_on_the_page() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    shown = [measure.what for measure in loaded().measures(1000, 100)]
    assert [what for what in shown if what not in page] == []


@pytest.mark.parametrize("only", ["claims, 16 writers", "list", "watch events of claims"])
def test_the_store_benchmark_runs_without_etcd(only: str, root: Path) -> None:
    report = root / "report.json"
    done = bench_store("--alone", "--count=8", f"--only={only}", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    assert "devlet" in done.stdout
    assert all(figure > 0 for row in rows(report).values() for figure in row["runs"]["devlet"])


@pytest.mark.peers
def test_the_store_benchmark_sets_etcd_beside_us(root: Path) -> None:
    if not (PEERS / "bench-etcd").is_file():
        pytest.skip("bench-etcd not built: run `make peers`")
    report = root / "report.json"
    done = bench_store("--count=8", "--only=slices, 16 writers", f"--directory={root}", f"--json={report}")
    assert done.returncode == 0, done.stderr
    (row,) = rows(report).values()
    assert set(row["runs"]) == {"devlet", "etcd"}
    assert row["ratios"]["etcd"] > 0
