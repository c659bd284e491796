"""A program that is stopped or killed, and started again, while a test goes on.

async with Restarts(partial(dra_example_driver, binaries, root, kubeconfig, node_name="n1")) as driver:
    await driver.kill()
    await driver.start()
    driver.running.log
"""

import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from devlet.kit.processes import RunningProcess

__all__ = ["Restarts"]


class Program(Protocol):
    """Something around a process, such as `HookedDriver`."""

    @property
    def process(self) -> RunningProcess: ...


P = TypeVar("P", bound=RunningProcess | Program)


class Restarts(Generic[P]):
    """`running` is the one of the last start, and may have ended since."""

    running: P

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[P]]) -> None:
        self._make = make
        self._life = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Until it is ready. One that runs is stopped first."""
        await self.stop()
        self.running = await self._life.enter_async_context(self._make())

    async def stop(self) -> None:
        """In good order, and until it is gone. One that has ended is left alone."""
        await self._life.aclose()

    async def kill(self) -> None:
        """With SIGKILL, and until it is gone."""
        running = self.running
        process = running if isinstance(running, RunningProcess) else running.process
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await self.stop()
