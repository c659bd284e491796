from itertools import count

import anyio
import anyio.lowlevel
import pytest

from devlet.kit.diagnostics import attach
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio


async def test_the_first_value_that_will_do_is_returned() -> None:
    numbers = count()

    async def read() -> int:
        return next(numbers)

    assert await until(read, lambda number: number > 2) == 3


async def test_what_was_seen_last_is_in_the_failure() -> None:
    async def read() -> str:
        return "still nothing"

    with pytest.raises(AssertionError, match=r"not within 0.01 s; last seen: \['still nothing'\]"):
        await until(read, lambda text: text == "something", within=0.01)


async def test_what_runs_is_in_the_failure() -> None:
    async def read() -> int:
        return 0

    with attach("driver", lambda: "it sleeps"), pytest.raises(AssertionError, match=r"\[0\]\n--- driver\nit sleeps"):
        await until(read, within=0.01)


async def test_a_deadline_shows_where_the_block_waited_and_what_it_had() -> None:
    found = ["only one"]
    with (
        attach("driver", lambda: "it sleeps"),
        pytest.raises(AssertionError) as failed,
        deadline(0.01),
    ):
        while len(found) < 2:
            await anyio.sleep_forever()
    text = str(failed.value)
    assert text.startswith("not within 0.01 s: await anyio.sleep_forever()\n")
    assert "test_waiting.py" in text and "found = ['only one']" in text and text.endswith("--- driver\nit sleeps")


async def test_a_block_that_ends_in_time_is_left_alone() -> None:
    with deadline():
        await anyio.lowlevel.checkpoint()
    with pytest.raises(ValueError, match="its own"), deadline():
        raise ValueError("its own")


async def test_a_value_without_a_repr_does_not_hide_the_rest() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise OSError("gone")

    broken = Broken()
    with pytest.raises(AssertionError, match="Broken without a repr"), deadline(0.01):
        await anyio.sleep_forever()
    assert broken is not None
