"""Wait for several things at once. All that wait must bear being cancelled: the slower ones are."""

from collections.abc import Awaitable, Callable

from anyio import create_task_group

__all__ = ["first"]


async def first(*waits: Callable[[], Awaitable[object]]) -> None:
    """Until one of them returns; the others have ended too by then."""
    async with create_task_group() as tasks:

        async def run(wait: Callable[[], Awaitable[object]]) -> None:
            await wait()
            tasks.cancel_scope.cancel()

        for wait in waits:
            tasks.start_soon(run, wait)
