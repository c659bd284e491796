"""Real small programs."""

import sys
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path

import pytest

from devlet.kit.processes import RunningProcess, line, process
from devlet.testing.restarts import Restarts

pytestmark = pytest.mark.anyio

# Ends with 7 when it is asked to.
PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('up', flush=True); signal.pause()"
)


@pytest.fixture
def program(tmp_path: Path) -> Restarts[RunningProcess]:
    numbers = count()

    def make() -> AbstractAsyncContextManager[RunningProcess]:
        return process([sys.executable, "-c", PROGRAM], log=tmp_path / f"log{next(numbers)}", ready=line("up"))

    return Restarts(make)


async def test_it_runs_in_its_block_and_is_stopped_afterwards(program: Restarts[RunningProcess]) -> None:
    async with program:
        assert program.running.returncode is None
    assert program.running.returncode == 7


async def test_it_is_started_again_after_it_was_killed_or_stopped(program: Restarts[RunningProcess]) -> None:
    async with program:
        killed = program.running
        await program.kill()
        await program.start()
        stopped = program.running
        await program.stop()
        await program.start()
        assert len({killed.pid, stopped.pid, program.running.pid}) == 3
        assert (killed.returncode, stopped.returncode, program.running.returncode) == (-9, 7, None)


async def test_a_running_program_is_stopped_before_it_is_started_again(program: Restarts[RunningProcess]) -> None:
    async with program:
        first = program.running
        await program.start()
        assert (first.returncode, program.running.returncode) == (7, None)


async def test_a_killed_program_can_be_stopped_and_killed_again(program: Restarts[RunningProcess]) -> None:
    async with program:
        await program.kill()
        await program.kill()
        await program.stop()
    assert program.running.returncode == -9
