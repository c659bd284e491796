import pytest

from devlet.sanity.check import Checks, Outcome, Passed
from devlet.sanity.sources import CDI, GRPC

pytestmark = pytest.mark.anyio


async def test_checks_are_kept_in_their_order_and_stay_functions() -> None:
    checks = Checks[int](CDI)

    @checks.add("A-2", "second", rule="r", how="h", fresh=True)
    async def second(rig: int) -> Outcome:
        return Passed(str(rig))

    @checks.add("A-1", "first", rule="r", how="h", source=GRPC)
    async def first(rig: int) -> Outcome:
        return Passed()

    assert [(check.id, check.source, check.fresh) for check in checks] == [("A-2", CDI, True), ("A-1", GRPC, False)]
    assert await second(7) == Passed("7")
