"""Run the stages of a plan and print what each one took: `python -m tools.ci [--plan=FILE] [STAGE...]`.

The default plan is `.ci/stages.toml`. If a stage fails or reaches its limit, the next stage still runs. Results go to
the plan's record, a JSON file with the last run of each stage; the table at the end shows how much longer a stage took
than the time before. A plan with `resume` skips the stages that have passed at this commit. `DEVLET_CI_LIMITS=off`
lifts the limits, for a machine that is busy with other things. Uses only the standard library, because it runs before
anything is installed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLANS = ROOT / ".ci"
TIMES = ROOT / ".cache" / "ci"
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
    """All stages, the file that records them, and the minutes that they and later stages may take together."""

    stages: tuple[Stage, ...]
    budget: float
    record: Path
    resume: bool
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
    properties: dict[str, dict[str, str]] = field(default_factory=dict)  # by test: its seed, its figures
    commit: str = ""
    date: str = ""
    load: float = 0.0


def read_plan(file: Path) -> Plan:
    raw = tomllib.loads(file.read_text())
    stages = tuple(Stage(each["name"], each["share"], each["limit"], tuple(each["command"])) for each in raw["stages"])
    return Plan(stages, raw["budget"], ROOT / raw["record"], raw.get("resume", False), raw.get("reserved", {}))


def run_stage(stage: Stage, folder: Path = TIMES, *, limited: bool = True) -> Result:
    """Run the stage's command in a process group of its own, and kill what is left of the group afterwards."""
    times = folder / f"{stage.name}.json"
    times.unlink(missing_ok=True)
    command = [word.replace("{times}", str(times)) for word in stage.command]
    began, before = time.monotonic(), os.times()
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, process_group=0)
    try:
        outcome = _wait(process, stage.limit * 60 if limited else None)
    finally:
        _signal(process, signal.SIGKILL)  # kill leftover processes; the group's id is free only when all are gone
    after = os.times()
    cpu = sum(getattr(after, key) - getattr(before, key) for key in ("children_user", "children_system"))
    result = Result(stage.name, outcome, round(time.monotonic() - began, 3), round(cpu, 3), stage.share * 60)
    result.commit, result.date, result.load = _commit(), f"{datetime.now(UTC):%F %R}", round(os.getloadavg()[0], 1)
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
    except (ProcessLookupError, PermissionError):  # the whole group has ended
        return


def _add_tests(result: Result, times: Path) -> None:
    try:
        tests = json.loads(times.read_text())["tests"]
    except (OSError, ValueError, KeyError, TypeError) as e:  # the run was killed while it wrote the file
        return print(f"{times}: {e}", file=sys.stderr)
    result.tests = len(tests)
    slowest = sorted(tests.items(), key=lambda pair: -pair[1]["wall"])[:SLOWEST]
    result.slowest = [(name, test["wall"]) for name, test in slowest]
    result.properties = {name: test["properties"] for name, test in tests.items() if "properties" in test}


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


def read_record(file: Path) -> dict[str, Result]:
    """Return the last result of each stage, by name."""
    try:
        return {each["name"]: Result(**each) for each in json.loads(file.read_text())["stages"]}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as e:  # the file is damaged, or of another version
        print(f"{file}: {e}; it is written again", file=sys.stderr)
        return {}


def write_record(file: Path, plan: Plan, results: Mapping[str, Result]) -> None:
    stages = [asdict(results[stage.name]) for stage in plan.stages if stage.name in results]
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"stages": stages}, indent=1) + "\n")
    new.replace(file)


def _commit() -> str:
    return _git("rev-parse", "HEAD")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def run(plan: Plan, wanted: Sequence[str], folder: Path = TIMES, *, limited: bool) -> int:
    """Run the wanted stages and print the table. Return the exit code."""
    before = read_record(plan.record)
    now, commit = dict(before), _commit()
    done: list[Result] = []
    try:
        for stage in (each for each in plan.stages if each.name in wanted):
            last = before.get(stage.name)
            if plan.resume and last and (last.outcome, last.commit) == ("passed", commit):
                print(f"===== {stage.name}: passed at this commit already", flush=True)
                continue
            print(f"\n===== {stage.name}", flush=True)
            result = now[stage.name] = run_stage(stage, folder, limited=limited)
            done.append(result)
            write_record(plan.record, plan, now)
            print(f"===== {stage.name}: {result.outcome} after {result.wall:.0f} s", flush=True)
    finally:
        print(f"\n{table(done, {name: last.wall for name, last in before.items()})}", flush=True)
    return int(any(each.outcome != "passed" for each in done))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the stages of a plan.")
    parser.add_argument("--plan", type=Path, default=PLANS / "stages.toml", help="File that lists the stages.")
    parser.add_argument("stage", nargs="*", metavar="STAGE", help="Stage to run. Default: all.")
    options = parser.parse_args(arguments)
    plan = read_plan(options.plan)
    names = [stage.name for stage in plan.stages]
    if unknown := [name for name in options.stage if name not in names]:
        parser.error(f"unknown stage {unknown[0]!r}; the stages are {', '.join(names)}")
    if plan.resume and (changed := _git("diff", "--name-only", "HEAD", "--", f":!{plan.record.relative_to(ROOT)}")):
        parser.error(f"the record names the commit that was tested: commit {', '.join(changed.split())} first")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))  # an exception, so that the running stage is ended too
    return run(plan, options.stage or names, limited=os.environ.get("DEVLET_CI_LIMITS") != "off")


if __name__ == "__main__":
    sys.exit(main())
