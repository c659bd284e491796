"""Who uses which devices."""

from typing import TYPE_CHECKING

import pytest

from devlet.control.informers import Informers
from devlet.control.taints.device_taints import DeviceTaints
from devlet.control.taints.rule_status import Counts
from devlet.control.taints.usage import Usage
from devlet.objects.identifiers import DeviceName
from devlet.objects.types.taint_rule import DeviceTaintSelector

if TYPE_CHECKING:
    from tests.unit.control.taints.conftest import World

pytestmark = pytest.mark.anyio


async def test_pods_are_found_by_the_devices_of_their_claims(world: "World") -> None:
    await world.user("p", "d0", "d1")
    await world.user("q", "d1")
    informers = Informers(world.store)
    usage = Usage(informers, workloads=False)
    async with informers.running():
        found = [pod.name for pod in usage.users(DeviceTaintSelector(device=DeviceName("d1")))]
        assert found == ["p", "q"]
        assert [pod.name for pod in usage.users_of(("default", "q"))] == ["q"]


@pytest.mark.spec("DA-7.5b")
async def test_a_dry_run_counts_what_no_execute_would_hit(world: "World") -> None:
    await world.publish()
    await world.user("p", "d0", "d1")
    await world.pod("stranger", "p")
    await world.rule(effect="None")
    await world.rule("nothing", effect="None", selector=None)
    informers = Informers(world.store)
    usage, taints = Usage(informers, workloads=False), DeviceTaints(informers)
    async with informers.running():
        rule, nothing = informers.rules.get("r"), informers.rules.get("nothing")
        assert rule is not None
        assert usage.dry_run(rule, taints) == Counts(namespaces=["default"], published=3, allocated=2)
        assert nothing is not None
        assert usage.dry_run(nothing, taints) == Counts()
