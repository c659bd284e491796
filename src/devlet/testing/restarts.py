"""Stop or kill a program, and start it again, during a test.

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
    """A wrapper of a process, such as `HookedDriver`."""

    @property
    def process(self) -> RunningProcess: ...


P = TypeVar("P", bound=RunningProcess | Program)


class Restarts(Generic[P]):
    """Starts and stops a program. `running` is the program of the last start, and may have ended since."""

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
        """Start the program, and wait until it is ready. A running program is stopped first."""
        await self.stop()
        self.running = await self._life.enter_async_context(self._make())

    async def stop(self) -> None:
        """Stop the program in order, and wait for its end."""
        await self._life.aclose()

    async def kill(self) -> None:
        """Kill the program with SIGKILL, and wait for its end."""
        running = self.running
        process = running if isinstance(running, RunningProcess) else running.process
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await self.stop()
