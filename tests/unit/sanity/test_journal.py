"""What has happened is counted, told, and forgotten if it is too much."""

import anyio
import anyio.lowlevel
import pytest

from devlet.sanity.journal import Journal

pytestmark = pytest.mark.anyio


async def test_new_entries_are_returned_even_if_old_ones_were_dropped() -> None:
    journal = Journal[str](3)
    for entry in "abcd":
        journal.append(entry)
    assert (journal.added, list(journal)) == (4, ["b", "c", "d"])
    assert (journal.since(2), journal.since(4), journal.since(0)) == (["c", "d"], [], ["b", "c", "d"])


async def test_one_waits_for_what_is_added() -> None:
    journal = Journal[str](3)
    assert not await journal.until(lambda: "a" in journal, 0.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.until, lambda: "a" in journal, 15.0)
        await anyio.lowlevel.checkpoint()
        journal.append("a")
    assert await journal.until(lambda: "a" in journal, 0.0)


async def test_it_has_settled_when_nothing_more_comes() -> None:
    journal = Journal[int](3)

    async def add() -> None:
        for number in range(3):
            journal.append(number)
            await anyio.sleep(0.01)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add)
        await journal.settle(0.1)
    assert journal.added == 3
