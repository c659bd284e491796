"""What a program leaves behind is found by its mark, wherever it went, and nothing else is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from devlet.kit import orphans

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]

AWAY = "setsid sh -c 'echo $$ > pid; sleep 1000 & wait' & while [ ! -s pid ]; do :; done"


def leave(where: Path, mark: str) -> int:
    """Of a process that has lost its parent; it has a child."""
    where.mkdir()
    environment = {"PATH": os.environ["PATH"], orphans.MARK: mark}
    subprocess.run(["sh", "-c", AWAY], cwd=where, env=environment, check=True)
    return int((where / "pid").read_text())


async def test_orphans_in_sessions_of_their_own_end_with_their_children(tmp_path: Path) -> None:
    with orphans.adopting():
        ours, other = leave(tmp_path / "ours", "ours"), leave(tmp_path / "other", "other")
        assert orphans.of("ours") == [ours]
        assert await orphans.end("ours")
        assert orphans.of("ours") == []
        assert orphans.of("other") == [other]
        assert not await orphans.end("ours")
        assert await orphans.end("other")


async def test_nothing_is_found_among_the_children_of_others(tmp_path: Path) -> None:
    pid = leave(tmp_path / "x", "x")
    try:
        assert orphans.of("x") == []
        assert not await orphans.end("x")
    finally:
        os.killpg(pid, signal.SIGKILL)


async def test_a_child_without_the_mark_is_left_alone() -> None:
    async with await anyio.open_process(["sleep", "1000"]) as child:
        assert not await orphans.end("x")
        assert child.returncode is None
        child.kill()
