import threading
from itertools import count

import anyio
import anyio.lowlevel
import pytest

from devlet.kit.diagnostics import attach
from devlet.testing.waiting import ThreadSafeChanges, deadline, until

pytestmark = pytest.mark.anyio


async def test_the_first_value_that_will_do_is_returned() -> None:
    numbers = count()

    async def read() -> int:
        return next(numbers)

    assert await until(read, lambda number: number > 2) == 3


async def test_what_was_seen_last_is_in_the_failure() -> None:
    async def read() -> str:
        return "still nothing"

    with pytest.raises(AssertionError, match=r"not within 0.01 s; last seen: \['still nothing'\]"):
        await until(read, lambda text: text == "something", within=0.01)


async def test_what_runs_is_in_the_failure() -> None:
    async def read() -> int:
        return 0

    with attach("driver", lambda: "it sleeps"), pytest.raises(AssertionError, match=r"\[0\]\n--- driver\nit sleeps"):
        await until(read, within=0.01)


async def test_a_deadline_shows_where_the_block_waited_and_what_it_had() -> None:
    found = ["only one"]
    with (
        attach("driver", lambda: "it sleeps"),
        pytest.raises(AssertionError) as failed,
        deadline(0.01),
    ):
        while len(found) < 2:
            await anyio.sleep_forever()
    text = str(failed.value)
    assert text.startswith("not within 0.01 s: await anyio.sleep_forever()\n")
    assert "test_waiting.py" in text and "found = ['only one']" in text and text.endswith("--- driver\nit sleeps")


async def test_a_block_that_ends_in_time_is_left_alone() -> None:
    with deadline():
        await anyio.lowlevel.checkpoint()
    with pytest.raises(ValueError, match="its own"), deadline():
        raise ValueError("its own")


async def test_a_value_without_a_repr_does_not_hide_the_rest() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise OSError("gone")

    broken = Broken()
    with pytest.raises(AssertionError, match="Broken without a repr"), deadline(0.01):
        await anyio.sleep_forever()
    assert broken is not None


async def test_a_task_waits_until_a_condition_is_true() -> None:
    changes, found = ThreadSafeChanges(), list[int]()
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            await changes.until(lambda: len(found) == 2)
            found.append(99)

        tasks.start_soon(wait)
        for number in range(2):
            await anyio.lowlevel.checkpoint()
            found.append(number)
            changes.notify()
    assert found == [0, 1, 99]


async def test_a_condition_that_is_true_already_is_not_waited_for() -> None:
    await ThreadSafeChanges().until(lambda: True)


async def test_another_thread_may_notify() -> None:
    changes, found = ThreadSafeChanges(), list[int]()

    def change() -> None:
        found.append(1)
        changes.notify()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, change)
        await changes.until(lambda: bool(found))


def test_a_thread_waits_for_another() -> None:
    changes, found = ThreadSafeChanges(), list[int]()

    def change() -> None:
        found.append(1)
        changes.notify()

    other = threading.Thread(target=change)
    other.start()
    assert changes.wait_until(lambda: bool(found), within=60)
    other.join()


def test_a_thread_gives_up() -> None:
    assert not ThreadSafeChanges().wait_until(lambda: False, within=0.0)


def test_a_closed_loop_is_not_notified() -> None:
    changes = ThreadSafeChanges()

    async def give_up() -> None:
        with anyio.move_on_after(0):
            await changes.until(lambda: False)

    anyio.run(give_up)
    changes.notify()
