import anyio
import pytest

from devlet.kit.race import first

pytestmark = pytest.mark.anyio


async def test_it_ends_with_the_first_and_the_others_are_cancelled() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("slow")

    async def quick() -> None:
        ended.append("quick")

    await first(slow, quick)
    assert ended == ["quick", "slow"]


async def test_an_error_of_one_ends_all() -> None:
    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ExceptionGroup) as raised:
        await first(anyio.sleep_forever, fails)
    assert raised.group_contains(ValueError, match="no")
