"""Real small programs: sh and this interpreter."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from devlet.errors import InvalidInput, Unavailable
from devlet.kit import orphans
from devlet.kit.processes import RunningProcess, ending, line, log_tail, process, socket_accepts
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "program.log"


def gone(pid: int) -> bool:
    """No such process, or only its entry is left for a parent that has not looked yet."""
    try:
        return re.search(r"^State:\s+Z", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE) is not None
    except FileNotFoundError:
        return True


async def until_gone(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with deadline(), os.fdopen(descriptor):
        await anyio.wait_readable(descriptor)


def content(log: Path) -> str:
    return log.read_text()


async def test_a_program_runs_inside_the_block_and_not_after_it(log: Path) -> None:
    async with process(["sh", "-c", "echo up; exec sleep 60"], log=log, ready=line("^up$")) as program:
        assert not gone(program.pid)
    assert program.returncode == -signal.SIGTERM
    assert gone(program.pid)


async def test_the_pid_is_the_programs_own(log: Path) -> None:
    async with process(["sh", "-c", 'echo "pid $$"; exec sleep 60'], log=log, ready=line(r"pid \d+")) as program:
        assert content(log) == f"pid {program.pid}\n"


async def test_both_outputs_are_kept_and_a_second_run_appends(log: Path) -> None:
    for _ in range(2):
        async with process(["sh", "-c", "echo out; echo err >&2"], log=log) as program:
            assert await program.wait() == 0
    assert content(log) == "out\nerr\n" * 2


async def test_a_program_that_dies_before_it_is_ready_is_reported_with_its_last_lines(log: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        async with process(["sh", "-c", "echo no such disk; exit 3"], log=log, ready=line("up")):
            pytest.fail("it was never ready")
    assert "sh: exited with 3 before it was ready" in str(caught.value)
    assert "no such disk" in str(caught.value)


async def test_a_program_that_a_signal_ended_is_reported_with_the_signal(log: Path) -> None:
    with pytest.raises(Unavailable, match="was ended by SIGKILL before it was ready"):
        async with process(["sh", "-c", "kill -9 $$"], log=log, ready=line("up")):
            pytest.fail("it was never ready")


async def test_a_program_that_is_not_ready_in_time_is_stopped_and_reported(log: Path) -> None:
    pids: list[int] = []

    async def never(program: RunningProcess) -> bool:
        pids.append(program.pid)
        return False

    with pytest.raises(Unavailable, match=r"sleep: not ready after 0\.1 s; its log .* is empty"):
        async with process(["sleep", "60"], log=log, ready=never, timeout=0.1):
            pytest.fail("it was never ready")
    assert gone(pids[0])


async def test_a_readiness_check_that_hangs_counts_as_not_ready(log: Path) -> None:
    async def hang(_: RunningProcess) -> bool:
        await anyio.sleep_forever()
        return True

    with pytest.raises(Unavailable, match="not ready"):
        async with process(["sleep", "60"], log=log, ready=hang, timeout=0.1):
            pytest.fail("it was never ready")


async def test_a_missing_program_is_named_and_nothing_is_started(log: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="/nowhere/etcd: no such program"):
        async with process(["/nowhere/etcd"], log=log):
            pytest.fail("there is nothing to run")
    assert not os.listdir(tmp_path)


async def test_a_program_deaf_to_sigterm_is_killed_with_its_children(log: Path) -> None:
    script = "trap '' TERM; sleep 60 & echo child $!; while :; do wait; done"
    async with process(["sh", "-c", script], log=log, ready=line("child"), grace=0.1) as program:
        child = int(content(log).split()[1])
    assert program.returncode == -signal.SIGKILL
    await until_gone(child)


async def test_children_do_not_outlive_a_program_that_ended_by_itself_or_by_sigterm(log: Path) -> None:
    script = "sleep 60 & echo child $!; exit 0"
    async with process(["sh", "-c", script], log=log) as program:
        await program.wait()
        first = int(content(log).split()[1])
        assert not gone(first)
    await until_gone(first)
    assert "left processes behind" in content(log)
    script = "sleep 60 & echo next $!; exec sleep 60"
    async with process(["sh", "-c", script], log=log, ready=line("next")):
        second = int(content(log).splitlines()[-1].split()[1])
    await until_gone(second)


@pytest.mark.skipif(sys.platform != "linux", reason="only there orphans can be adopted")
async def test_children_in_sessions_of_their_own_do_not_outlive_it_either(log: Path) -> None:
    script = "(setsid sleep 60 & echo child $! >&2); sleep 60"
    with orphans.adopting():
        async with process(["sh", "-c", script], log=log, ready=line("child")):
            child = int(content(log).split()[1])
            assert not gone(child)
        assert gone(child)
    assert "left processes behind" in content(log)


async def test_children_that_were_killed_with_it_were_not_left_behind(log: Path) -> None:
    async with process(["sh", "-c", "sleep 60 & echo up; wait"], log=log, ready=line("up")) as program:
        program.kill_group()
        await program.wait()
    assert content(log) == "up\n"


async def test_a_program_that_cannot_be_executed_says_why(log: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF and nothing else")
    program.chmod(0o755)
    with pytest.raises(Unavailable, match="exited with 126 before it was ready") as caught:
        async with process([program], log=log, ready=line("up")):
            pytest.fail("it was never ready")
    assert str(caught.value).endswith(f"{program}: Exec format error")


async def test_a_program_without_a_name_is_an_error(log: Path) -> None:
    with pytest.raises(InvalidInput, match="the name of the program is empty"):
        async with process([""], log=log):
            pytest.fail("there is nothing to run")


def test_each_way_to_end_has_words() -> None:
    found = [ending(code) for code in (3, -signal.SIGTERM, -signal.SIGRTMIN - 6)]
    assert found == ["exited with 3", "was ended by SIGTERM", f"was ended by signal {signal.SIGRTMIN + 6}"]


async def test_a_program_that_cleans_up_within_the_grace_is_not_killed(log: Path) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done"
    async with process(["sh", "-c", script], log=log, ready=line("up")) as program:
        pass
    assert program.returncode == 0
    assert content(log).endswith("bye\n")


async def test_a_cancelled_block_still_stops_the_program(log: Path) -> None:
    with anyio.CancelScope() as scope:
        async with process(["sleep", "60"], log=log) as program:
            scope.cancel()
            await anyio.sleep_forever()
    assert gone(program.pid)


async def test_a_signal_to_a_program_that_has_ended_is_ignored(log: Path) -> None:
    async with process(["true"], log=log) as program:
        await program.wait()
        program.send_signal(signal.SIGTERM)
    assert program.returncode == 0


async def test_the_callers_environment_does_not_leak(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/me/production")
    async with process(["env"], log=log, env={"NODE_NAME": "n1"}) as program:
        await program.wait()
    seen = dict(one.split("=", 1) for one in content(log).splitlines())
    assert seen["NODE_NAME"] == "n1"
    assert seen["PATH"] == os.environ["PATH"]
    assert "KUBECONFIG" not in seen


async def test_the_program_has_a_session_of_its_own(log: Path) -> None:
    async with process(["sleep", "60"], log=log) as program:
        assert os.getsid(program.pid) == program.pid != os.getsid(0)


async def test_a_socket_is_ready_when_something_listens(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    script = (
        "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(60)"
    )
    async with process([sys.executable, "-c", script, path], log=log, ready=socket_accepts(path)) as program:
        assert program.returncode is None
        assert path.is_socket()


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
async def test_a_killed_caller_leaves_no_program_behind(log: Path) -> None:
    caller = f"""
import anyio, os, pathlib, signal
from devlet.kit.processes import process
async def main():
    async with process(["sleep", "60"], log=pathlib.Path({str(log)!r})) as program:
        while "sleep" not in pathlib.Path(f"/proc/{{program.pid}}/comm").read_text():
            await anyio.sleep(0.01)
        print(program.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
anyio.run(main)
"""
    answer = await anyio.run_process([sys.executable, "-c", caller], check=False, stderr=subprocess.STDOUT)
    assert answer.returncode == -signal.SIGKILL, answer.stdout.decode()
    await until_gone(int(answer.stdout))


def test_only_the_end_of_a_long_log_is_shown(log: Path) -> None:
    log.parent.mkdir()
    log.write_text("".join(f"line {n}\n" for n in range(10_000)))
    text = log_tail(log)
    assert text.endswith("line 9999")
    assert text.count("\n") == 20
