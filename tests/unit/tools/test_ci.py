import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tools import ci
from tools.ci import PLANS, Plan, Result, Stage, read_plan, read_record, run, run_stage, table, write_record


def stage(program: str, *, limit: float = 10.0, name: str = "s") -> Stage:
    return Stage(name, 1, limit, (sys.executable, "-c", program, "{times}"))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Two stages that say that they ran; the second one fails while there is a file `broken`."""
    says = f"open({str(tmp_path / 'ran')!r}, 'a').write"
    stages = [
        stage(f"{says}('a')", name="a"),
        stage(f"{says}('b'); import os; raise SystemExit(os.path.exists({str(tmp_path / 'broken')!r}))", name="b"),
    ]
    return Plan(tuple(stages), 10, tmp_path / "new" / "run.json", False, {})


@pytest.mark.parametrize("file", sorted(PLANS.glob("*.toml")), ids=lambda file: str(file.stem))
def test_the_stages_and_what_is_reserved_fit_into_the_budget(file: Path) -> None:
    plan = read_plan(file)
    shares = sum(each.share for each in plan.stages) + sum(plan.reserved.values())
    assert shares <= plan.budget
    assert all(each.share <= each.limit for each in plan.stages)
    assert len({each.name for each in plan.stages}) == len(plan.stages)


def test_a_stage_that_exits_with_0_passes(tmp_path: Path) -> None:
    result = run_stage(stage("sum(range(10**6))"), tmp_path)
    assert (result.name, result.outcome, result.share, result.tests) == ("s", "passed", 60, None)
    assert result.wall > 0 and result.cpu > 0


def test_a_stage_that_exits_otherwise_fails(tmp_path: Path) -> None:
    assert run_stage(stage("raise SystemExit(3)"), tmp_path).outcome == "FAILED (3)"


def test_a_stage_that_reaches_its_limit_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    program = f"""
import subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
open({str(alive)!r}, "w").write(str(child.pid))
time.sleep(600)
"""
    assert run_stage(stage(program, limit=10 / 60), tmp_path).outcome == "FAILED (limit)"
    end = time.monotonic() + 60
    while (running := is_running(int(alive.read_text()))) and time.monotonic() < end:
        time.sleep(0.05)
    assert not running


def test_without_limits_a_stage_takes_its_time(tmp_path: Path) -> None:
    assert run_stage(stage("import time; time.sleep(0.1)", limit=0), tmp_path, limited=False).outcome == "passed"


def test_the_tests_of_a_stage_are_counted_and_the_slowest_five_named(tmp_path: Path) -> None:
    tests = {f"t{number}": {"wall": float(number), "cpu": 0.0} for number in range(9)}
    program = f"import sys; open(sys.argv[1], 'w').write({json.dumps({'tests': tests})!r})"
    result = run_stage(stage(program), tmp_path)
    assert result.tests == 9
    assert result.slowest == [("t8", 8.0), ("t7", 7.0), ("t6", 6.0), ("t5", 5.0), ("t4", 4.0)]


def test_times_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"tests": {"old": {"wall": 1.0}}}')
    assert run_stage(stage("pass"), tmp_path).tests is None


def test_the_table_shows_shares_sums_and_the_change() -> None:
    results = [
        Result("check", "passed", 100.4, 150.0, 180.0),
        Result("test", "FAILED (1)", 300.0, 500.0, 240.0, 17, [("tests/a.py::test_b", 12.34)]),
    ]
    text = table(results, {"test": 200.0})
    assert text.splitlines() == [
        "stage        outcome         tests  wall s   CPU s share s  change",
        "check        passed                    100     150     180",
        "test         FAILED (1)         17     300     500     240    +100  over its share by 60 s",
        "all                             17     400     650     420",
        "",
        "slowest of test:",
        "   12.3 s  tests/a.py::test_b",
    ]


def test_the_record_has_the_last_run_of_every_stage(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(plan, ["a", "b"], tmp_path, limited=True) == 0
    first = read_record(plan.record)
    assert list(first) == ["a", "b"]
    assert len(first["a"].commit) == 40 and first["a"].date.startswith("20")
    write_record(plan.record, plan, first | {"b": replace(first["b"], wall=1000.0)})
    capsys.readouterr()
    assert run(plan, ["b"], tmp_path, limited=True) == 0
    assert capsys.readouterr().out.splitlines()[-2].split()[-1].startswith(("-9", "-1000"))  # the change
    assert read_record(plan.record)["a"] == first["a"]


def test_a_stage_that_fails_does_not_keep_the_next_one_from_running(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    assert run(replace(plan, stages=plan.stages[::-1]), ["a", "b"], tmp_path, limited=True) == 1
    assert (tmp_path / "ran").read_text() == "ba"
    assert {name: each.outcome for name, each in read_record(plan.record).items()} == {"a": "passed", "b": "FAILED (1)"}


def test_a_plan_that_resumes_runs_what_has_not_passed_at_this_commit(plan: Plan, tmp_path: Path) -> None:
    plan = replace(plan, resume=True)
    (tmp_path / "broken").touch()
    assert run(plan, ["a", "b"], tmp_path, limited=True) == 1
    (tmp_path / "broken").unlink()
    assert run(plan, ["a", "b"], tmp_path, limited=True) == 0
    assert (tmp_path / "ran").read_text() == "abb"
    record = read_record(plan.record)
    write_record(plan.record, plan, record | {"a": replace(record["a"], commit="0" * 40)})
    assert run(plan, ["a", "b"], tmp_path, limited=True) == 0
    assert (tmp_path / "ran").read_text() == "abba"


@pytest.mark.parametrize("damage", ["{", "[]", '{"stages": [{"name": "a"}]}', '{"stages": 3}'])
def test_damaged_files_do_not_lose_the_table(
    plan: Plan, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.record.parent.mkdir()
    plan.record.write_text(damage)
    broken = stage(f"import sys; open(sys.argv[1], 'w').write({damage!r})", name="a")
    assert run(replace(plan, stages=(broken,)), ["a"], tmp_path, limited=True) == 0
    shown = capsys.readouterr()
    assert "a.json: " in shown.err and "run.json: " in shown.err
    assert "a            passed" in shown.out
    assert list(read_record(plan.record)) == ["a"]


def test_an_unknown_stage_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ci.main(["nosuch"])
    assert "unknown stage 'nosuch'; the stages are install, check, test" in capsys.readouterr().err
