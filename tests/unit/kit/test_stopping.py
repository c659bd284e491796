"""How parts are stopped with it is in test_main."""

import os
import signal

import anyio
import pytest

from devlet.errors import Unavailable
from devlet.kit.parts import running
from devlet.kit.stopping import Stop

pytestmark = pytest.mark.anyio


async def test_a_signal_before_the_start_is_over_cancels_it() -> None:
    stop = Stop(1.0)
    async with running(stop.listen):
        with stop.scope:
            os.kill(os.getpid(), signal.SIGTERM)
            await anyio.sleep_forever()
        assert stop.scope.cancelled_caught
    stop.check()


async def test_a_signal_after_the_start_is_received() -> None:
    stop = Stop(1.0)
    async with running(stop.listen):
        with stop.scope:
            os.kill(os.getpid(), signal.SIGINT)
            await stop.asked()
    stop.check()
    assert not stop.scope.cancelled_caught


async def test_a_part_that_does_not_stop_in_time_is_cancelled_and_reported() -> None:
    stop = Stop(0.01)
    async with running(stop.listen):
        with stop.scope:
            os.kill(os.getpid(), signal.SIGTERM)
            await stop.asked()
            await anyio.sleep_forever()
    with pytest.raises(Unavailable, match=r"stopping took longer than 0\.01 s"):
        stop.check()
