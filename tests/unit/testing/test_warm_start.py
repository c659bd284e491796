import gc
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from devlet.kit.processes import line, process
from devlet.testing import warm_start
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio

PROGRAM = """
import os, sys, time
from devlet.kit.chance import random
print("argv", sys.argv[1:], "cwd", os.getcwd(), "env", os.environ.get("WORD"), os.environ.get("PATH"))
print("session", os.getsid(0) == os.getpid(), "chance", random.random(), "files", len(os.listdir("/proc/self/fd")))
print("errors go there as well", file=sys.stderr, flush=True)
if sys.argv[1:] == ["wait"]:
    time.sleep(600)
sys.exit(7)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The directory of a module that says how it was started."""
    (tmp_path / "says.py").write_text(PROGRAM)
    return tmp_path


def command(*arguments: str) -> Sequence[str]:
    return [sys.executable, "-m", "says", *arguments]


async def test_a_module_gets_its_arguments_environment_directory_and_log(program: Path) -> None:
    log = program / "log"
    async with process(
        command("a", "b"), log=log, env={"WORD": "x"}, cwd=program, start=warm_start.start, name="says"
    ) as running:
        with deadline():
            assert await running.wait() == 7
    assert f"argv ['a', 'b'] cwd {program} env x " in log.read_text() and "errors go there as well" in log.read_text()
    assert "session True" in log.read_text()


async def test_two_processes_have_different_random_numbers_and_no_files_of_each_other(program: Path) -> None:
    said: list[str] = []
    for name in ("first", "second"):
        log = program / name
        started = process(
            command("wait"), log=log, cwd=program, start=warm_start.start, name=name, ready=line("errors go")
        )
        async with started as running:
            async with process(
                command(), log=program / f"{name}-beside", cwd=program, start=warm_start.start
            ) as beside:
                with deadline():
                    assert await beside.wait() == 7
            assert running.describe().startswith(f"pid {running.pid}, runs; ")
        assert running.returncode == -signal.SIGTERM
        said += [(program / f"{name}-beside").read_text().splitlines()[1], log.read_text().splitlines()[1]]
    numbers = [each.split()[3] for each in said]
    assert len(set(numbers)) == 4
    assert len({each.split()[5] for each in said}) == 1


async def test_a_process_that_is_killed_reports_the_signal(program: Path) -> None:
    async with process(
        command("wait"), log=program / "log", cwd=program, start=warm_start.start, ready=line("errors go")
    ) as running:
        running.send_signal(signal.SIGKILL)
        with deadline():
            assert await running.wait() == -signal.SIGKILL
        running.send_signal(signal.SIGTERM)  # its pid may belong to another process by now


async def test_a_start_that_is_cancelled_returns_the_process_so_that_the_caller_can_end_it(program: Path) -> None:
    with (program / "log").open("wb") as log, anyio.CancelScope() as scope:
        scope.cancel()
        running = await warm_start.start(command("wait"), log.fileno(), {}, program)
    assert running.returncode is None
    running.send_signal(signal.SIGKILL)
    with deadline():
        assert await running.wait() == -signal.SIGKILL


async def test_a_process_that_was_not_awaited_is_collected_without_a_warning(program: Path) -> None:
    with (program / "log").open("wb") as log:
        running = await warm_start.start(command("wait"), log.fileno(), {}, program)
    os.kill(running.pid, signal.SIGKILL)
    cycle: list[object] = [running]
    cycle.append(cycle)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del running, cycle
        gc.collect()
    assert [str(each.message) for each in caught if "socket" in str(each.message)] == []


async def test_a_command_that_is_not_a_python_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="-m MODULE"):
        async with process(["sh", "-c", "true"], log=tmp_path / "log", start=warm_start.start):
            raise AssertionError("it was started")


async def test_a_module_that_does_not_exist_ends_with_an_error_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with process([sys.executable, "-m", "no_such_module"], log=log, start=warm_start.start) as running:
        with deadline():
            assert await running.wait() == 1
    assert "No module named no_such_module" in log.read_text()


def test_a_command_is_run_to_its_end_with_its_input_and_output(program: Path) -> None:
    file = program / "echo.py"
    file.write_text("import says_more, sys\nprint(sys.argv[1:], input())\nsys.exit(says_more.CODE)\n")
    (program / "says_more.py").write_text("import sys\nsys.stderr.write('oh\\n')\nCODE = 3\n")
    done = warm_start.run([sys.executable, str(file), "a"], input="hello\n", cwd=Path("/"))
    assert (done.returncode, done.stdout, done.stderr) == (3, "['a'] hello\n", "oh\n")


def test_a_command_that_takes_too_long_is_killed(program: Path) -> None:
    with pytest.raises(TimeoutError):
        warm_start.run(command("wait"), cwd=program, timeout=0.2)


def test_a_command_line_of_devlet_is_what_it_is_otherwise() -> None:
    done = warm_start.run([sys.executable, "-m", "devlet", "get", "--no-such-flag"])
    assert done.returncode == 1 and "no-such-flag" in done.stderr and done.stdout == ""
