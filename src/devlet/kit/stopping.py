"""Stop a program on a signal.

While the program starts, the first signal cancels it. Later, the first signal stops it in order, within a time limit,
and the second one ends the process at once.
"""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from anyio import TASK_STATUS_IGNORED, CancelScope, Event, current_time, open_signal_receiver, sleep_forever
from anyio.abc import TaskStatus

from devlet.errors import Unavailable
from devlet.kit.facts import facts

__all__ = ["Stop"]

log = logging.getLogger(__name__)


class Stop:
    """Put `scope` around the parts, from before their start to after their stop."""

    def __init__(self, timeout: float) -> None:
        self.scope = CancelScope()
        self._timeout = timeout
        self._started = False
        self._asked = Event()

    async def listen(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Wait for the first signal. The next one then has its default effect. Runs as a part."""
        with open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                log.info("stop requested", extra=facts(signal=number.name))
                break
        with _deadly(signal.SIGINT):
            self._asked.set() if self._started else self.scope.cancel()
            await sleep_forever()

    async def asked(self) -> None:
        """Wait until the program has to stop, and set its time limit. Call it when everything has started."""
        self._started = True
        await self._asked.wait()
        self.scope.deadline = current_time() + self._timeout

    def check(self) -> None:
        """Raise Unavailable if the parts did not stop in time."""
        if self._asked.is_set() and self.scope.cancelled_caught:
            raise Unavailable(f"stopping took longer than {self._timeout:g} s; the rest was cancelled")


@contextmanager
def _deadly(number: signal.Signals) -> Iterator[None]:
    """Let the signal end the process while the block runs, instead of raising KeyboardInterrupt."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)
