import pytest

from devlet.errors import NotFound, PluginUnavailable
from devlet.objects.identifiers import ClaimName, ClaimUID
from devlet.plugins.dra import ClaimProblem, ClaimRef
from tests.support.claim_specimens import GPU, NIC, claim, key
from tests.support.scripted_drivers import Claims, ScriptedDriver, ScriptedDrivers

pytestmark = pytest.mark.anyio


async def test_a_driver_prepares_what_it_has_no_problem_with_and_remembers_it() -> None:
    driver = ScriptedDriver(GPU)
    driver.problems["bad"] = "no"
    asked = [ClaimRef("default", ClaimName(name), ClaimUID(f"u-{name}")) for name in ("good", "bad")]
    found = await driver.prepare(asked)
    assert found[ClaimUID("u-bad")] == ClaimProblem("no") and driver.prepared == {"u-good"}
    await driver.unprepare(asked)
    assert driver.prepared == set() and driver.calls == [("prepare", ("good", "bad")), ("unprepare", ("good", "bad"))]


async def test_only_registered_drivers_are_found() -> None:
    drivers = ScriptedDrivers(ScriptedDriver(GPU))
    assert drivers.is_usable(GPU) and not drivers.is_usable(NIC)
    with pytest.raises(PluginUnavailable, match="not registered"):
        drivers.pick(NIC)
    before = drivers.version
    drivers.add(ScriptedDriver(NIC))
    assert await drivers.changed(before) > before


async def test_only_claims_that_exist_are_read() -> None:
    claims = Claims(claim("c"))
    assert (await claims.read(key("c"))).name == "c"
    with pytest.raises(NotFound):
        await claims.read(key("d"))
