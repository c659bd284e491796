from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from devlet.kit.parts import first, running

pytestmark = pytest.mark.anyio


def part(name: str, diary: list[str]) -> Callable[..., Coroutine[Any, Any, None]]:
    async def run(*, task_status: TaskStatus[None]) -> None:
        await anyio.lowlevel.checkpoint()
        diary.append(f"{name} ready")
        task_status.started()
        try:
            await anyio.sleep_forever()
        finally:
            diary.append(f"{name} stopped")

    return run


async def test_parts_start_in_order_and_stop_in_reverse() -> None:
    diary: list[str] = []
    async with running(part("store", diary)), running(part("node", diary)):
        diary.append("block")
    assert diary == ["store ready", "node ready", "block", "node stopped", "store stopped"]


async def test_a_part_that_dies_ends_the_block_with_its_error() -> None:
    async def dies(fail: anyio.Event, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        await fail.wait()
        raise ValueError("no disk")

    fail = anyio.Event()
    with pytest.raises(ExceptionGroup) as caught:
        async with running(partial(dies, fail)):
            fail.set()
            await anyio.sleep_forever()
    assert [str(e) for e in caught.value.exceptions] == ["no disk"]


async def test_a_part_that_cannot_start_keeps_the_block_from_running() -> None:
    async def dies(*, task_status: TaskStatus[None]) -> None:
        raise ValueError("port taken")

    entered = False
    with pytest.raises(ExceptionGroup):
        async with running(dies):
            entered = True
    assert not entered


async def test_an_error_in_the_block_stops_the_part() -> None:
    diary: list[str] = []
    with pytest.raises(ExceptionGroup):
        async with running(part("store", diary)):
            raise ValueError("block")
    assert diary == ["store ready", "store stopped"]


async def test_it_ends_with_the_first_and_the_others_are_cancelled() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("slow")

    async def quick() -> None:
        ended.append("quick")

    await first(slow, quick)
    assert ended == ["quick", "slow"]


async def test_an_error_of_one_ends_all() -> None:
    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ExceptionGroup) as raised:
        await first(anyio.sleep_forever, fails)
    assert raised.group_contains(ValueError, match="no")
