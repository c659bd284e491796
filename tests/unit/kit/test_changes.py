import anyio
import pytest

from devlet.kit.changes import Changes
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


async def test_a_change_between_the_look_and_the_wait_is_not_missed() -> None:
    changes = Changes()
    seen = changes.version
    changes.notify()
    with deadline():
        assert await changes.after(seen) == seen + 1


async def test_each_waiting_task_is_woken_by_one_change() -> None:
    changes, woken = Changes(), list[int]()

    async def wait() -> None:
        woken.append(await changes.next())

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert woken == []
        changes.notify()
    assert woken == [1, 1, 1]


async def test_several_changes_are_seen_as_one() -> None:
    changes = Changes()
    seen = changes.version
    for _ in range(3):
        changes.notify()
    assert await changes.after(seen) == 3


async def test_a_cancelled_wait_leaves_the_others() -> None:
    changes, woken = Changes(), list[int]()

    async def wait() -> None:
        woken.append(await changes.next())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        with anyio.move_on_after(0):
            await changes.next()
        await anyio.wait_all_tasks_blocked()
        changes.notify()
    assert woken == [1]


async def test_until_returns_the_first_true_value() -> None:
    changes, found, values = Changes(), list[list[int]](), list[int]()

    async def wait() -> None:
        found.append(await changes.until(lambda: values[1:]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        for value in (1, 2):
            await anyio.wait_all_tasks_blocked()
            assert found == []
            values.append(value)
            changes.notify()
    assert found == [[2]]


async def test_until_does_not_wait_for_what_is_there() -> None:
    assert await Changes().until(lambda: "there") == "there"
