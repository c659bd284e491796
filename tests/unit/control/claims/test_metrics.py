from typing import TYPE_CHECKING

import pytest

from devlet.control.claims.metrics import ClaimMetrics
from devlet.kit.metrics import Registry
from devlet.objects.types.claim import DeviceRequest, DeviceSubRequest, ExactDeviceRequest

if TYPE_CHECKING:
    from tests.unit.control.claims.conftest import World

pytestmark = pytest.mark.anyio


@pytest.mark.spec("DA-6.2f")
async def test_claims_are_counted_by_allocation_access_and_source(world: "World") -> None:
    await world.template()
    await world.claim("plain")
    await world.claim("extended", annotations={"resource.kubernetes.io/extended-resource-claim": "true"})
    async with world.working():
        await world.pod(gpu="one-gpu", nic="one-gpu")
        await world.allocate("plain")
        await world.settled()
    lines = [line for line in world.metrics.text().splitlines() if "_resource_claims{" in line]
    name = "resourceclaim_controller_resource_claims"
    assert lines == [
        f'{name}{{allocated="false",admin_access="false",source="extended_resource"}} 1',
        f'{name}{{allocated="false",admin_access="false",source="resource_claim_template"}} 2',
        f'{name}{{allocated="true",admin_access="false",source=""}} 1',
    ]


@pytest.mark.spec("DA-6.2f")
async def test_creations_are_counted_by_outcome_and_access(world: "World") -> None:
    registry = Registry()
    metrics = ClaimMetrics(registry, world.informers.claims)
    plain = DeviceRequest(name="a", first_available=(DeviceSubRequest(name="x"),))
    admin = DeviceRequest(name="b", exactly=ExactDeviceRequest(admin_access=True))
    metrics.created([plain, admin], success=True)
    metrics.created([plain], success=True)
    metrics.created([plain], success=False)
    lines = [line for line in registry.text().splitlines() if line.startswith("resourceclaim_controller_creates_total")]
    assert lines == [
        'resourceclaim_controller_creates_total{status="failure",admin_access="false"} 1',
        'resourceclaim_controller_creates_total{status="success",admin_access="false"} 1',
        'resourceclaim_controller_creates_total{status="success",admin_access="true"} 1',
    ]
