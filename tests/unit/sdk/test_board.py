"""A value for many readers."""

from contextlib import aclosing

import anyio
import pytest

from devlet.sdk.board import Board

pytestmark = pytest.mark.anyio


async def test_a_reader_sees_the_value_that_is_there_and_each_one_after_it() -> None:
    board = Board[int]()
    board.show(1)
    async with aclosing(board.values()) as values:
        assert await anext(values) == 1
        board.show(2)
        assert await anext(values) == 2


async def test_a_slow_reader_misses_values_but_not_the_last() -> None:
    board = Board[int]()
    async with aclosing(board.values()) as values:
        for number in (1, 2, 3):
            board.show(number)
        assert await anext(values) == 3


async def test_an_early_reader_waits() -> None:
    board = Board[int]()
    seen: list[int] = []

    async def read() -> None:
        async with aclosing(board.values()) as values:
            seen.append(await anext(values))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert not seen and board.readers == 1
        board.show(7)
    assert seen == [7] and board.readers == 0


async def test_the_same_is_said_again_after_a_while() -> None:
    board = Board[int]()
    board.show(1)
    async with aclosing(board.values(lambda value: 0.01)) as values:
        assert [await anext(values) for _ in range(3)] == [1, 1, 1]


async def test_each_value_says_when_it_is_said_again() -> None:
    board = Board[float]()
    board.show(600)
    async with aclosing(board.values(lambda value: value)) as values:
        assert await anext(values) == 600
        board.show(0.01)
        assert [await anext(values) for _ in range(3)] == [0.01] * 3
