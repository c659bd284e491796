"""Parts: pieces of a program that run beside a block of code.

A part is an async function that takes `task_status` and calls `task_status.started()` once others may rely on
it. Leaving the block cancels the part and waits for it, so nested blocks stop in the reverse order of their start.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from anyio import create_task_group


@asynccontextmanager
async def running(run: Callable[..., Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run a part beside the block: ready on entry, stopped on exit; if it dies, so does the block."""
    async with create_task_group() as tasks:
        await tasks.start(run)
        yield
        tasks.cancel_scope.cancel()
