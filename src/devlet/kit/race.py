"""Wait for the first of several things to happen."""

from collections.abc import Awaitable, Callable

from anyio import create_task_group

__all__ = ["first"]


async def first(*waits: Callable[[], Awaitable[object]]) -> None:
    """Run the functions at the same time until one of them returns. Cancel the others and wait for their end."""
    async with create_task_group() as tasks:

        async def run(wait: Callable[[], Awaitable[object]]) -> None:
            await wait()
            tasks.cancel_scope.cancel()

        for wait in waits:
            tasks.start_soon(run, wait)
