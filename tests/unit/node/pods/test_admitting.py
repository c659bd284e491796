"""The admission of pods by their workers: what interrupts it, and what makes them retry."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from devlet.errors import Unavailable
from devlet.kit.backoff import Backoff
from devlet.node.devices.manager import DeviceManager
from devlet.node.pods.manager import Settings
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS
from devlet.testing.waiting import deadline

if TYPE_CHECKING:
    from tests.unit.node.pods.conftest import NodeHarness

pytestmark = pytest.mark.anyio

MakePod = Callable[..., Document]
QUICK = Settings(retry=Backoff(1.0, 2.0))


async def test_a_pod_that_is_deleted_during_its_admission_ends_well(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now) as plugin:
        plugin.hang("Allocate")
        uid = await node.create(make_pod("p", 1))
        with deadline():
            await plugin.until_asked("Allocate")
        await node.store.delete(PODS, "p", "default")
        plugin.recover("Allocate")
        await node.gone("p")
        assert now.held(uid) == set() and now.pods.active() == []


class FullDisk:
    """The device manager of a node on which the first admissions cannot be stored."""

    def __init__(self, devices: DeviceManager, failures: int) -> None:
        self._devices = devices
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._devices, name)

    def attempt(self, pod: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise Unavailable("no space left on device")
        return self._devices.attempt(pod)


async def test_an_admission_that_cannot_be_stored_is_retried(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running(QUICK, use=lambda devices: FullDisk(devices, 2)) as now, node.plugged(now):
        await node.create(make_pod("p", 1))
        event = await node.event("FailedAdmission")
        assert "no space left on device" in event["message"]
        await node.pass_time(10)
        await node.phase("p", "Running")


async def test_a_pod_that_is_deleted_does_not_wait_for_a_plugin_that_hangs(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now, 1) as plugin:
        plugin.hang("Allocate")
        await node.create(make_pod("p", 1))
        await plugin.until_asked("Allocate")
        await node.store.delete(PODS, "p", "default")
        await node.gone("p")
        assert now.devices.allocated_counts() == {}
        plugin.recover("Allocate")
