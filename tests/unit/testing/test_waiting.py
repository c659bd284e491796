from itertools import count

import pytest

from devlet.testing.waiting import until

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
