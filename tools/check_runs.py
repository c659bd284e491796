"""Fail if a recorded long run in docs/runs is not of this code: `python -m tools.check_runs`.

Plans with `resume` (see tools/ci.py) are run by hand now and then, and their records are committed. Every stage of a
plan must have passed, at a commit that is an ancestor of this one.
"""

import subprocess
import sys
from pathlib import Path

from tools.ci import PLANS, ROOT, Result, read_plan, read_record


def problems(plans: Path = PLANS, root: Path = ROOT) -> list[str]:
    """Return a line for each stage of a recorded plan that did not pass, or passed elsewhere."""
    found = []
    for file in sorted(plans.glob("*.toml")):
        plan = read_plan(file)
        if not plan.resume:
            continue
        record = read_record(plan.record)
        found += [
            f"{plan.record.relative_to(ROOT)}: {stage.name} {problem}; run `make {file.stem}`"
            for stage in plan.stages
            if (problem := _problem(record.get(stage.name), root))
        ]
    return found


def _problem(result: Result | None, root: Path) -> str | None:
    if result is None:
        return "was never run"
    if result.outcome != "passed":
        return f"ended with {result.outcome}"
    if not _is_ancestor(result.commit, root):
        return f"ran at {result.commit[:12]}, which is not in the history of this commit"
    return None


def _is_ancestor(commit: str, root: Path) -> bool:
    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)

    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        return True  # a shallow clone, or no clone at all, does not have the history
    return git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def main() -> int:
    found = problems()
    print("\n".join(found) or "all recorded runs passed, at commits of this history")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
