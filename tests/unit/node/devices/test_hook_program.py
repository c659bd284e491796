"""Real programs: sh, and what it starts."""

import os
from pathlib import Path

import anyio
import pytest

from devlet.errors import Unavailable
from devlet.node.devices import hook_program
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


async def sh(script: str, *words: str, message: bytes = b"", timeout: float = 10.0, **environment: str) -> None:
    await hook_program.run(["/bin/sh", "-c", script, "sh", *words], environment, message, timeout)


async def test_a_program_gets_its_arguments_environment_and_message(root: Path) -> None:
    await sh('{ echo "$1 $A"; cat; pwd; env; } >"$2"', "word", f"{root}/out", message=b"said\n", A="1")
    first, said, where, *environment = (root / "out").read_text().splitlines()
    assert (first, said, where) == ("word 1", "said", "/")
    assert {line.split("=")[0] for line in environment} <= {"A", "PATH", "PWD", "_", "SHLVL", "OLDPWD"}


async def test_a_failed_program_is_reported_with_the_end_of_its_output() -> None:
    with pytest.raises(Unavailable) as error:
        await sh("yes | head -c 1000000; echo the end >&2; exit 3")
    assert str(error.value).startswith("/bin/sh exited with 3: y\ny")
    assert str(error.value).endswith("\nthe end")
    assert len(str(error.value)) < 600


async def test_a_signal_is_named() -> None:
    with pytest.raises(Unavailable, match="ended by SIGTERM"):
        await sh("kill -TERM $$")


async def test_a_signal_without_a_name_has_its_number() -> None:
    with pytest.raises(Unavailable, match="ended by signal 40"):
        await sh("kill -40 $$")


async def test_a_missing_program_is_named() -> None:
    with pytest.raises(Unavailable, match="/absent cannot be started: No such file"):
        await hook_program.run(["/absent"], {}, b"", 1.0)


async def test_arguments_that_the_kernel_refuses_are_an_error() -> None:
    with pytest.raises(Unavailable, match="cannot be started"):
        await sh("true", A="\0")
    with pytest.raises(Unavailable, match="cannot be started"):
        await sh("true", A="x" * 200_000)


async def test_a_program_that_takes_too_long_is_killed_with_its_children(root: Path) -> None:
    os.mkfifo(root / "alive")
    keeper = os.open(root / "alive", os.O_RDONLY | os.O_NONBLOCK)
    with deadline():
        with pytest.raises(Unavailable, match=r"killed after 5 s: begun"):
            await sh('exec 3>"$1"; sleep 600 & echo begun; sleep 600', f"{root}/alive", timeout=5)
        await anyio.wait_readable(keeper)  # the end of the last process that held the other end
    assert os.read(keeper, 1) == b""
    os.close(keeper)


async def test_cancellation_kills_the_program(root: Path) -> None:
    os.mkfifo(root / "alive")
    keeper = os.open(root / "alive", os.O_RDONLY | os.O_NONBLOCK)
    with deadline():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sh, 'exec 3>"$1"; echo x >&3; sleep 600', f"{root}/alive")
            await anyio.wait_readable(keeper)
            assert os.read(keeper, 2) == b"x\n"
            tasks.cancel_scope.cancel()
        await anyio.wait_readable(keeper)
    assert os.read(keeper, 1) == b""
    os.close(keeper)


async def test_a_program_has_ended_even_if_its_children_still_run() -> None:
    with deadline():
        await sh("sleep 90 & exit 0")


async def test_a_program_may_ignore_its_input() -> None:
    await sh("exec <&-; exit 0", message=b"x" * 1_000_000)
