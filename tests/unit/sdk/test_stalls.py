"""An author's code that does not let go of the event loop."""

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from devlet.sdk import stalls
from devlet.sdk.stalls import Settings, Watchdog, place, watched
from devlet.testing.waiting import until

SOON = Settings(limit=0.25, interval=0.02)  # longer than a busy machine takes its time


class Heard(logging.Handler):
    """Whoever blocks can wait for what is said about it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), record.__dict__["facts"]))
        self.came.set()


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler, before = Heard(), stalls.log.level
    stalls.log.addHandler(handler)
    stalls.log.setLevel(logging.INFO)
    yield handler
    stalls.log.removeHandler(handler)
    stalls.log.setLevel(before)


def block(heard: Heard) -> None:
    assert heard.came.wait(60)


@pytest.mark.anyio
async def test_blocking_code_is_reported_and_so_is_the_end_of_the_stall(heard: Heard) -> None:
    async def both() -> bool:
        return len(heard.lines) >= 2

    with watched(SOON):
        block(heard)
        await until(both)
    (blocked, where), (runs_again, after) = heard.lines[:2]
    assert "blocks the event loop" in blocked and "anyio.to_thread.run_sync" in blocked
    line = block.__code__.co_firstlineno + 1
    assert where["at"] == f"{Path(__file__)}:{line} in block"
    assert "runs again" in runs_again and isinstance(after["seconds"], float)


@pytest.mark.anyio
async def test_nothing_is_left_when_it_is_over() -> None:
    before = set(threading.enumerate())
    with watched(SOON):
        assert [each.name for each in set(threading.enumerate()) - before] == ["watchdog"]
    assert not set(threading.enumerate()) - before


def test_each_stall_is_reported_once_however_long_it_lasts(heard: Heard) -> None:
    dog = Watchdog(Settings(limit=5, interval=1), threading.get_ident(), now=0)
    for now in (1, 4, 5, 6, 60):
        dog.look(now)
    assert [facts["seconds"] for _, facts in heard.lines] == [5.0]
    dog.turn(61)
    dog.look(62)
    dog.look(66)
    assert [facts["seconds"] for _, facts in heard.lines] == [5.0, 61.0, 5.0]


def test_a_stall_right_after_another_is_reported_as_well(heard: Heard) -> None:
    dog = Watchdog(Settings(limit=5, interval=1), threading.get_ident(), now=0)
    dog.look(5)
    dog.turn(5)
    dog.look(10)
    assert ["blocks the event loop" in text for text, _ in heard.lines] == [True, False, True]


def test_a_process_that_was_stopped_as_a_whole_has_no_stall(heard: Heard) -> None:
    dog = Watchdog(Settings(limit=5, interval=1), threading.get_ident(), now=0)
    dog.look(1)
    dog.look(100)
    assert heard.lines == []


async def placed(path: str, name: str) -> str:
    """Of a function that the loop calls, if its code came from that file."""
    found: list[str] = []
    done = anyio.Event()

    def keep() -> None:
        found.append(place(sys._getframe(1)))
        done.set()

    code = compile(f"def {name}():\n    keep()\n{name}()", path, "exec")
    asyncio.get_running_loop().call_soon(exec, code, {"keep": keep})
    await done.wait()
    return found[0]


@pytest.mark.anyio
@pytest.mark.parametrize("directory", [stalls._LIBRARIES[0], stalls._LIBRARIES[-1], stalls._STANDARD[0]])
async def test_a_driver_that_is_installed_is_named_too_and_a_library_if_there_is_nothing_else(directory: str) -> None:
    assert await placed(f"{directory}/leds.py", "devices") == f"{directory}/leds.py:2 in devices"
