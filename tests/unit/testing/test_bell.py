import threading

import anyio
import pytest

from devlet.testing.bell import Bell


@pytest.mark.anyio
async def test_a_task_waits_until_something_holds() -> None:
    bell, found = Bell(), list[int]()
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            await bell.until(lambda: len(found) == 2)
            found.append(99)

        tasks.start_soon(wait)
        for number in range(2):
            await anyio.lowlevel.checkpoint()
            found.append(number)
            bell.ring()
    assert found == [0, 1, 99]


@pytest.mark.anyio
async def test_what_holds_already_is_not_waited_for() -> None:
    await Bell().until(lambda: True)


@pytest.mark.anyio
async def test_another_thread_may_ring() -> None:
    bell, found = Bell(), list[int]()

    def change() -> None:
        found.append(1)
        bell.ring()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, change)
        await bell.until(lambda: bool(found))


def test_a_thread_waits_for_another() -> None:
    bell, found = Bell(), list[int]()

    def change() -> None:
        found.append(1)
        bell.ring()

    other = threading.Thread(target=change)
    other.start()
    assert bell.wait_until(lambda: bool(found), within=60)
    other.join()


def test_a_thread_gives_up() -> None:
    assert not Bell().wait_until(lambda: False, within=0.0)


def test_a_loop_that_was_closed_is_not_told() -> None:
    bell = Bell()

    async def give_up() -> None:
        with anyio.move_on_after(0):
            await bell.until(lambda: False)

    anyio.run(give_up)
    bell.ring()
