"""The scheduler's metrics."""

import pytest

from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.kit.metrics import Registry
from tests.support.workloads import node, pod
from tests.unit.control.conftest import World


def test_attempts_are_counted_by_result() -> None:
    registry = Registry()
    metrics = SchedulerMetrics(registry)
    metrics.attempted("scheduled", 0.5)
    metrics.attempted("error")
    text = registry.text()
    assert 'scheduler_schedule_attempts_total{profile="devlet",result="scheduled"} 1' in text
    assert 'scheduler_schedule_attempts_total{profile="devlet",result="error"} 1' in text
    assert "scheduler_scheduling_algorithm_duration_seconds_count 1" in text


@pytest.mark.spec("DA-5.7j")
def test_waits_for_devices_are_counted_by_driver_and_result() -> None:
    registry = Registry()
    SchedulerMetrics(registry).waited("gpu.example.com", "timeout", 600.0)
    labels = '{profile="devlet",driver="gpu.example.com",status="timeout"}'
    assert f"scheduler_dra_bindingconditions_allocations_total{labels} 1" in registry.text()
    assert f"scheduler_dra_bindingconditions_wait_duration_seconds_count{labels} 1" in registry.text()


@pytest.mark.anyio
async def test_pending_pods_are_shown(world: World) -> None:
    await world.add(node("n1"))
    async with world.scheduling():
        await world.add(pod("large", requests={"cpu": "5"}))
        await world.reason("large")
        assert 'scheduler_pending_pods{queue="unschedulable"} 1' in world.metrics.text()
        await world.remove("large")
        await world.add(pod("small"))
        await world.bound("small")
        text = world.metrics.text()
    assert 'scheduler_pending_pods{queue="unschedulable"} 0' in text
    assert 'scheduler_pending_pods{queue="active"} 0' in text
