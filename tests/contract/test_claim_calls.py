"""The claim manager and a driver at the two ends of a socket: what each answer, and each silence, leads to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devlet.errors import NotPrepared
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.claims.manager import ClaimManager
from devlet.objects.identifiers import PodUID
from devlet.plugins.dra import Service
from devlet.plugins.dra_driver import Settings
from devlet.plugins.dra_registry import DraRegistry
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver
from devlet.testing.waiting import until
from tests.support.claim_specimens import GPU, claim, pod
from tests.support.scripted_drivers import Claims

pytestmark = pytest.mark.anyio

POD = PodUID("pod-1")
ADVERTISED = {
    Service.V1: "v1.DRAPlugin",
    Service.V1BETA1: "v1beta1.DRAPlugin",
    Service.V1ALPHA4: "v1alpha3.NodeService",
}


@asynccontextmanager
async def joined(
    driver: FakeDraDriver, root: Path, *, call: float = 10.0, legacy: Service | None = None
) -> AsyncIterator[ClaimManager]:
    registry = DraRegistry(SystemClock(), Settings(call=call), legacy={GPU: legacy} if legacy else {})
    manager = ClaimManager(root, registry, Claims(claim()).read, SystemClock())

    async def usable() -> bool:
        return registry.is_usable(GPU)

    async with driver, running(registry.run), running(manager.run):
        versions = [ADVERTISED[each] for each in driver.services if each in ADVERTISED] or ["1.0.0"]
        await registry.register(GPU, driver.path, versions)
        await until(usable)
        yield manager


@pytest.mark.parametrize("service", list(Service))
async def test_a_claim_is_prepared_and_unprepared_in_every_version_of_the_api(root: Path, service: Service) -> None:
    driver = FakeDraDriver(root, GPU, services=[service])
    async with joined(driver, root, legacy=service if service.is_legacy else None) as manager:
        await manager.prepare(pod())
        (prepared,) = driver.prepared.values()
        assert manager.cdi_devices(pod(), pod().containers[0]) == prepared.devices[0].cdi_devices
        await manager.unprepare(POD)
        assert not driver.prepared and not manager.holds(POD)


@pytest.mark.spec("DN-10.M05")
async def test_a_claim_that_the_answer_leaves_out_was_skipped(root: Path) -> None:
    driver = FakeDraDriver(root, GPU)
    driver.skip_claim("claim")
    async with joined(driver, root) as manager:
        with pytest.raises(NotPrepared, match="the driver skipped this claim"):
            await manager.prepare(pod())
        assert manager.holds(POD)


@pytest.mark.spec("DN-10.M19")
async def test_a_claim_that_the_answer_to_unprepare_leaves_out_is_kept(root: Path) -> None:
    driver = FakeDraDriver(root, GPU)
    driver.skip_claim("claim", method=UNPREPARE, times=1)
    async with joined(driver, root) as manager:
        await manager.prepare(pod())
        with pytest.raises(NotPrepared, match="skipped this claim"):
            await manager.unprepare(POD)
        assert manager.holds(POD)
        await manager.unprepare(POD)
        assert not manager.holds(POD)


@pytest.mark.spec("DN-10.M20")
async def test_an_entry_without_anything_is_success(root: Path) -> None:
    driver = FakeDraDriver(root, GPU)
    driver.set_devices("claim", [])
    async with joined(driver, root) as manager:
        await manager.prepare(pod())
        await manager.unprepare(POD)
        assert not manager.holds(POD)


@pytest.mark.spec("DN-10.M10")
async def test_a_driver_that_is_too_slow_is_not_waited_for(root: Path) -> None:
    driver = FakeDraDriver(root, GPU)
    driver.hang(PREPARE)
    async with joined(driver, root, call=0.5) as manager:
        with pytest.raises(NotPrepared, match="NodePrepareResources was not answered within"):
            await manager.prepare(pod())
        assert len(driver.asked(PREPARE)) == 1


@pytest.mark.spec("DN-10.M18")
async def test_a_driver_that_is_too_slow_to_unprepare_is_asked_once_and_the_claim_kept(root: Path) -> None:
    driver = FakeDraDriver(root, GPU)
    driver.hang(UNPREPARE)
    async with joined(driver, root, call=0.5) as manager:
        await manager.prepare(pod())
        with pytest.raises(NotPrepared, match="NodeUnprepareResources was not answered within"):
            await manager.unprepare(POD)
        assert len(driver.asked(UNPREPARE)) == 1 and manager.holds(POD)
