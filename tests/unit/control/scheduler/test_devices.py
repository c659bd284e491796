"""Access to the allocator."""

import threading

import anyio
import pytest

from devlet.control.scheduler.devices import Devices
from devlet.objects.documents import view
from devlet.objects.identifiers import DeviceName, DriverName, PoolName
from devlet.objects.types.claim import DeviceResult
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.slice import ResourceSlice
from tests.support.workloads import DRIVER, device_class, slice_of

pytestmark = pytest.mark.anyio


def a_slice(devices: int = 1) -> ResourceSlice:
    return view(ResourceSlice, slice_of("n1", devices))


def given(device: str = "gpu-0", **more: object) -> DeviceResult:
    return DeviceResult(driver=DriverName(DRIVER), pool=PoolName("n1"), device=DeviceName(device), **more)  # type: ignore[arg-type]


async def test_changes_are_applied_at_once() -> None:
    devices = Devices()
    devices.see_slice(None, a_slice())
    devices.see_class(None, view(DeviceClass, device_class()))
    devices.hold(("default", "c"), [given()])
    inventory = devices.allocator.inventory
    assert inventory.find(given().identity)[0].is_taken and DRIVER in inventory.classes
    devices.release(("default", "c"))
    devices.see_class(view(DeviceClass, device_class()), None)
    assert not inventory.find(given().identity)[0].is_taken and not inventory.classes
    devices.see_slice(a_slice(), None)
    assert not inventory.find(given().identity)


async def test_changes_are_postponed_while_a_thread_searches() -> None:
    devices, begun, finish = Devices(), threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        finish.wait(60)
        return len(list(devices.allocator.inventory.slices()))

    found: list[int] = []

    async def search() -> None:
        found.append(await devices.in_thread(work))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(search)
        await anyio.to_thread.run_sync(begun.wait)
        devices.see_slice(None, a_slice())
        assert devices.is_busy and not list(devices.allocator.inventory.slices())
        finish.set()
        await devices.idle()
    assert found == [0] and len(list(devices.allocator.inventory.slices())) == 1


async def test_the_allocator_is_free_again_after_a_failed_search() -> None:
    devices = Devices()

    def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await devices.in_thread(work)
    assert not devices.is_busy


async def test_an_invalid_slice_removes_its_devices() -> None:
    devices = Devices()
    devices.see_slice(None, a_slice())
    broken = slice_of("n1", [{"name": "gpu-0", "capacity": {"memory": {"value": "much"}}}])
    devices.see_slice(a_slice(), view(ResourceSlice, broken))
    assert not list(devices.allocator.inventory.slices())


async def test_a_device_counts_as_fully_used_if_its_consumed_capacity_cannot_be_read() -> None:
    devices = Devices()
    devices.see_slice(None, a_slice())
    devices.hold(("default", "c"), [given(share_id="s", consumed_capacity={"memory": "much"})])
    assert devices.allocator.inventory.find(given().identity)[0].is_taken
