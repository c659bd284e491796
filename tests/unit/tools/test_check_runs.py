import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tools import check_runs, ci
from tools.check_runs import problems
from tools.ci import Result, read_plan, write_record

PLAN = """
record = "docs/runs/long.json"
resume = true
budget = 10
[[stages]]
name = "a"
share = 1
limit = 1
command = ["true"]
"""


def git(root: Path, *words: str) -> str:
    words = ("-c", "user.name=n", "-c", "user.email=n@example.com", *words)
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a plan and two commits."""
    root = tmp_path / "repository"
    (root / ".ci").mkdir(parents=True)
    (root / ".ci/long.toml").write_text(PLAN)
    (root / ".ci/stages.toml").write_text(PLAN.replace("resume = true", "").replace("docs/runs", ".cache"))
    git(root, "init", "--quiet")
    for message in ("one", "two"):
        git(root, "commit", "--quiet", "--allow-empty", "-m", message)
    for module in (ci, check_runs):
        monkeypatch.setattr(module, "ROOT", root)
    return root


def found(root: Path, result: Result | None = None) -> list[str]:
    plan = read_plan(root / ".ci/long.toml")
    write_record(plan.record, plan, {"a": result} if result else {})
    return problems(root / ".ci", root)


def passed(commit: str) -> Result:
    return Result("a", "passed", 1.0, 1.0, 60.0, commit=commit)


def test_a_run_that_passed_at_an_earlier_commit_counts(root: Path) -> None:
    assert found(root, passed(git(root, "rev-parse", "HEAD~1"))) == []


def test_a_run_at_a_commit_of_another_history_does_not(root: Path) -> None:
    elsewhere = git(root, "commit-tree", "HEAD^{tree}", "-m", "another")
    assert found(root, passed(elsewhere)) == [
        f"docs/runs/long.json: a ran at {elsewhere[:12]}, which is not in the history of this commit; run `make long`"
    ]


def test_a_run_that_failed_or_is_missing_does_not_count(root: Path) -> None:
    failed = replace(passed(git(root, "rev-parse", "HEAD")), outcome="FAILED (1)")
    assert found(root, failed) == ["docs/runs/long.json: a ended with FAILED (1); run `make long`"]
    assert found(root) == ["docs/runs/long.json: a was never run; run `make long`"]


def test_a_clone_without_the_history_cannot_tell(root: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{root}", str(shallow))
    plan = read_plan(root / ".ci/long.toml")
    write_record(plan.record, plan, {"a": passed(git(root, "rev-parse", "HEAD~1"))})
    assert problems(root / ".ci", shallow) == []
