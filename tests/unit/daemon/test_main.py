import gc
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from devlet.daemon.config import Config
from devlet.daemon.main import embedded_parts, run
from devlet.errors import InUse, InvalidInput, Unavailable
from devlet.kit.clock import SystemClock
from devlet.objects.kinds import CONFIG_MAPS
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def signals_are_as_before() -> object:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    yield
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def kill(number: signal.Signals) -> Callable[[], None]:
    return partial(os.kill, os.getpid(), number)


def noting(diary: list[str], *, stop: float = 0.0) -> Callable[[Config], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def parts(config: Config) -> AsyncIterator[None]:
        diary.append("started")
        try:
            yield
            await anyio.sleep(stop)
            diary.append("stopped in order")
        finally:
            diary.append("stopped")

    return parts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_the_parts(root: Path, number: signal.Signals) -> None:
    diary: list[str] = []
    with deadline():
        await run(Config(root, "n"), noting(diary), on_ready=kill(number))
    assert diary == ["started", "stopped in order", "stopped"]


async def test_a_signal_during_the_start_cancels_it(root: Path) -> None:
    diary: list[str] = []

    @asynccontextmanager
    async def endless_start(config: Config) -> AsyncIterator[None]:
        kill(signal.SIGTERM)()
        try:
            await anyio.sleep_forever()
            yield
        finally:
            diary.append("cancelled")

    with deadline():
        await run(Config(root, "n"), endless_start, on_ready=partial(diary.append, "ready"))
    assert diary == ["cancelled"]


async def test_parts_that_do_not_stop_in_time_are_cancelled(root: Path) -> None:
    diary: list[str] = []
    with deadline(), pytest.raises(Unavailable, match=r"longer than 0\.05 s"):
        config = Config(root, "n", stop_timeout=0.05)
        await run(config, noting(diary, stop=3600), on_ready=kill(signal.SIGTERM))
    assert diary == ["started", "stopped"]


async def test_one_root_has_one_daemon(root: Path) -> None:
    refused: list[str] = []

    @asynccontextmanager
    async def second(config: Config) -> AsyncIterator[None]:
        try:
            await run(config, noting([]))
        except InUse as e:
            refused.append(str(e))
        yield

    await run(Config(root, "n"), second, on_ready=kill(signal.SIGTERM))
    assert refused == [f"{root} is in use by process {os.getpid()}, which holds {root}/devlet.lock"]


async def test_an_unsafe_root_is_refused_before_anything_starts(root: Path) -> None:
    diary: list[str] = []
    os.chmod(root, 0o777)
    with pytest.raises(InvalidInput, match="writable by other users"):
        await run(Config(root, "n"), noting(diary))
    assert diary == []


async def test_a_part_that_cannot_start_ends_the_daemon_and_frees_the_root(root: Path) -> None:
    @asynccontextmanager
    async def broken(config: Config) -> AsyncIterator[None]:
        if config.node_name == "n":
            raise InvalidInput("port taken")
        yield

    with pytest.raises(ExceptionGroup) as caught:
        await run(Config(root, "n"), broken)
    assert caught.group_contains(InvalidInput, match="port taken")
    diary: list[str] = []
    await run(Config(root, "n"), noting(diary), on_ready=kill(signal.SIGTERM))
    assert diary[-1] == "stopped"


async def test_the_embedded_store_is_kept_below_the_root(root: Path) -> None:
    await run(Config(root, "n"), on_ready=kill(signal.SIGTERM))
    assert (root / "cluster.db").exists()


def test_the_control_loops_are_loaded_beside_the_event_loop(root: Path) -> None:
    finder = """
import sys, threading

class Watch:
    def find_spec(self, name, path, target=None):
        if name in ("devlet.daemon.main", "devlet.control.scheduler.scheduler"):
            print(name, threading.current_thread() is threading.main_thread(), flush=True)

sys.meta_path.insert(0, Watch())
from devlet.cli.main import main
sys.argv = ["devlet", "up", "--root", sys.argv[1], "--node-name", "node1"]
main()
"""
    with subprocess.Popen([sys.executable, "-c", finder, str(root / "node")], stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout
        lines = {up.stdout.readline().strip() for _ in range(4)}
        up.terminate()
    assert {"devlet.daemon.main True", "devlet.control.scheduler.scheduler False"} < lines
    assert any("devlet is ready" in line for line in lines)


async def test_two_embedded_nodes_run_in_one_process_and_leave_its_garbage_collector_alone(root: Path) -> None:
    first, second = root / "a", root / "b"
    first.mkdir(mode=0o700)
    second.mkdir(mode=0o700)
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.set_threshold(701, *before[1:])
    async with embedded_parts(Config(first, "a"), SystemClock()) as one:
        async with embedded_parts(Config(second, "b"), SystemClock()) as two:
            await one.store.create(CONFIG_MAPS, {"metadata": {"name": "mine"}}, "default")
            assert one.store.exists(CONFIG_MAPS, "mine", "default")
            assert not two.store.exists(CONFIG_MAPS, "mine", "default")
            assert (one.node.status.uid or "a") != (two.node.status.uid or "a")
    assert (gc.get_threshold()[0], gc.get_freeze_count() <= frozen) == (701, True)
    gc.set_threshold(*before)
