"""Run the stages of `.ci/stages.toml` and print what each one took: `python -m tools.ci [STAGE...]`.

The next stage runs even if a stage fails or reaches its limit. The table at the end is also written to
`.cache/ci/run.json`. The previous run is kept in `previous.json`, and the table shows how much longer each stage takes.
`DEVLET_CI_LIMITS=off` lifts the limits, for a machine that is busy with other things. Uses the standard library only,
because it runs before anything is installed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGES = ROOT / ".ci" / "stages.toml"
RESULTS = ROOT / ".cache" / "ci"
GRACE = 15.0  # seconds between SIGINT, SIGTERM and SIGKILL for a stage that reached its limit
SLOWEST = 5


@dataclass(frozen=True)
class Stage:
    """A command with its share and limit in minutes. `{times}` is replaced by the path of the file for test times."""

    name: str
    share: float
    limit: float
    command: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """All stages, and the minutes that they and the stages of later work may take together."""

    stages: tuple[Stage, ...]
    budget: float
    reserved: dict[str, float]


@dataclass
class Result:
    """The outcome of a stage. Times are in seconds; CPU time is that of all processes that the stage waited for."""

    name: str
    outcome: str
    wall: float
    cpu: float
    share: float
    tests: int | None = None
    slowest: list[tuple[str, float]] = field(default_factory=list)


def read_plan(file: Path = STAGES) -> Plan:
    raw = tomllib.loads(file.read_text())
    stages = tuple(Stage(each["name"], each["share"], each["limit"], tuple(each["command"])) for each in raw["stages"])
    return Plan(stages, raw["budget"], raw["reserved"])


def run_stage(stage: Stage, results: Path = RESULTS, *, limited: bool = True) -> Result:
    """Run the stage's command in a process group of its own, and kill what is left of the group afterwards."""
    times = results / f"{stage.name}.json"
    times.unlink(missing_ok=True)
    command = [word.replace("{times}", str(times)) for word in stage.command]
    began, before = time.monotonic(), os.times()
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, process_group=0)
    try:
        outcome = _wait(process, stage.limit * 60 if limited else None)
    finally:
        _signal(process, signal.SIGKILL)  # whatever it left running; the group's id is free only when all are gone
    after = os.times()
    cpu = sum(getattr(after, key) - getattr(before, key) for key in ("children_user", "children_system"))
    result = Result(stage.name, outcome, time.monotonic() - began, cpu, stage.share * 60)
    if times.is_file():
        _add_tests(result, times)
    return result


def _wait(process: subprocess.Popen[bytes], limit: float | None) -> str:
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):  # on SIGINT pytest names the test that hangs
            _signal(process, number)
            try:
                process.wait(GRACE)
                break
            except subprocess.TimeoutExpired:
                continue
        return "FAILED (limit)"
    return f"FAILED ({code})" if code else "passed"


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):  # all of it has ended
        return


def _add_tests(result: Result, times: Path) -> None:
    try:
        tests = json.loads(times.read_text())["tests"]
    except (OSError, ValueError) as e:  # the run was killed while it wrote the file
        return print(f"{times}: {e}", file=sys.stderr)
    result.tests = len(tests)
    slowest = sorted(tests.items(), key=lambda pair: -pair[1]["wall"])[:SLOWEST]
    result.slowest = [(name, test["wall"]) for name, test in slowest]


def table(results: Sequence[Result], previous: dict[str, float]) -> str:
    """Return the results as text: a line per stage and their sum, then the slowest tests of each stage."""
    lines = [f"{'stage':12} {'outcome':14} {'tests':>6} {'wall s':>7} {'CPU s':>7} {'share s':>7} {'change':>7}"]
    for each in results:
        before = previous.get(each.name)
        change = "" if before is None else f"{each.wall - before:+.0f}"
        over = f"  over its share by {each.wall - each.share:.0f} s" if each.wall > each.share else ""
        tests = "" if each.tests is None else each.tests
        numbers = f"{tests:>6} {each.wall:7.0f} {each.cpu:7.0f} {each.share:7.0f} {change:>7}"
        lines.append(f"{each.name:12} {each.outcome:14} {numbers}{over}".rstrip())
    tests, wall, cpu, share = (
        sum(getattr(each, key) or 0 for each in results) for key in ("tests", "wall", "cpu", "share")
    )
    lines.append(f"{'all':12} {'':14} {tests:>6} {wall:7.0f} {cpu:7.0f} {share:7.0f}")
    for each in results:
        if each.slowest:
            lines += ["", f"slowest of {each.name}:"]
            lines += [f"{seconds:7.1f} s  {name}" for name, seconds in each.slowest]
    return "\n".join(lines)


def write(results: Sequence[Result], folder: Path = RESULTS) -> dict[str, float]:
    """Write run.json, rename the previous one to previous.json, and return its wall times by stage."""
    folder.mkdir(parents=True, exist_ok=True)
    last = folder / "run.json"
    try:
        previous = {each["name"]: each["wall"] for each in json.loads(last.read_text())["stages"]}
        last.replace(folder / "previous.json")
    except (OSError, ValueError):
        previous = {}  # there is none, or it is damaged
    stages = [asdict(each) for each in results]
    last.write_text(json.dumps({"commit": _commit(), "load": os.getloadavg(), "stages": stages}, indent=1) + "\n")
    return previous


def _commit() -> str:
    answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return answer.stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    plan = read_plan()
    names = [stage.name for stage in plan.stages]
    parser = argparse.ArgumentParser(description="Run the CI stages.")
    parser.add_argument("stage", nargs="*", metavar="STAGE", help=f"Stage to run: {', '.join(names)}. Default: all.")
    wanted = parser.parse_args(arguments).stage or names
    if unknown := [name for name in wanted if name not in names]:
        parser.error(f"unknown stage {unknown[0]!r}; the stages are {', '.join(names)}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))  # an exception, so that the running stage is ended too
    results = []
    try:
        for stage in (each for each in plan.stages if each.name in wanted):
            print(f"\n===== {stage.name}", flush=True)
            results.append(run_stage(stage, limited=os.environ.get("DEVLET_CI_LIMITS") != "off"))
            print(f"===== {stage.name}: {results[-1].outcome} after {results[-1].wall:.0f} s", flush=True)
    finally:
        print(f"\n{table(results, write(results))}", flush=True)
    return int(any(each.outcome != "passed" for each in results))


if __name__ == "__main__":
    sys.exit(main())
