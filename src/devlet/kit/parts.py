"""Run parts of a program beside a block of code, and wait for the first of several events.

A part is an async function that takes `task_status` and calls `task_status.started()` as soon as it is ready. Leaving
the block cancels the part and waits for it, so nested blocks stop in the reverse order of their start.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from anyio import create_task_group

__all__ = ["first", "running"]


@asynccontextmanager
async def running(run: Callable[..., Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run a part beside the block: ready on entry, stopped on exit. If the part fails, so does the block."""
    async with create_task_group() as tasks:
        await tasks.start(run)
        yield
        tasks.cancel_scope.cancel()


async def first(*waits: Callable[[], Awaitable[object]]) -> None:
    """Run the functions at the same time until one of them returns. Cancel the others and wait for their end."""
    async with create_task_group() as tasks:

        async def run(wait: Callable[[], Awaitable[object]]) -> None:
            await wait()
            tasks.cancel_scope.cancel()

        for wait in waits:
            tasks.start_soon(run, wait)
