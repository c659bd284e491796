import json
import sys
import time
from pathlib import Path

import pytest
from tools import ci
from tools.ci import Result, Stage, read_plan, run_stage, table, write


def stage(program: str, *, limit: float = 10.0, name: str = "s") -> Stage:
    return Stage(name, 1, limit, (sys.executable, "-c", program, "{times}"))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def test_the_stages_and_what_is_reserved_fit_into_the_budget() -> None:
    plan = read_plan()
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


def test_the_results_are_written_beside_those_of_the_run_before(tmp_path: Path) -> None:
    assert write([Result("test", "passed", 200.0, 1.0, 240.0)], tmp_path) == {}
    assert write([Result("test", "passed", 210.0, 1.0, 240.0)], tmp_path) == {"test": 200.0}
    last, previous = (json.loads((tmp_path / name).read_text()) for name in ("run.json", "previous.json"))
    assert last["stages"][0]["wall"] == 210.0 and previous["stages"][0]["wall"] == 200.0
    assert len(last["commit"]) == 40 and len(last["load"]) == 3


def test_damaged_files_do_not_lose_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text("{")
    result = run_stage(stage("import sys; open(sys.argv[1], 'w').write('{')"), tmp_path)
    assert (result.outcome, result.tests) == ("passed", None)
    assert "s.json: " in capsys.readouterr().err
    assert write([result], tmp_path) == {}


def test_an_unknown_stage_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ci.main(["nosuch"])
    assert "unknown stage 'nosuch'; the stages are install, check, test" in capsys.readouterr().err
