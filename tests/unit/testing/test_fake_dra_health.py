from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path

import pytest

from devlet.errors import InvalidInput, PluginRefused, PluginUnavailable
from devlet.plugins.channels import Connection, connection
from devlet.plugins.dra import DeviceReport, HealthService
from devlet.testing.dra_script import GARBAGE, WATCH
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.waiting import deadline
from devlet.wire.dra_health import api_pb2 as pb

pytestmark = pytest.mark.anyio

PATH = "/v1alpha1.DRAResourceHealth/NodeWatchResources"
GOOD = DeviceReport("pool", "a", "Healthy", 20.0)
BAD = DeviceReport("pool", "a", "Unhealthy", message="hot")


def driver_with_health(root: Path) -> FakeDraDriver:
    return FakeDraDriver(root, health_services=[HealthService.V1ALPHA1])


def dialled(driver: FakeDraDriver) -> AbstractAsyncContextManager[Connection]:
    return connection("p", driver.path, within=60, max_message=1 << 20)


def seen(blob: bytes) -> list[tuple[str, str, int, int, str]]:
    devices = pb.NodeWatchResourcesResponse.FromString(blob).devices
    return [
        (d.device.pool_name, d.device.device_name, d.health, d.health_check_timeout_seconds, d.message) for d in devices
    ]


async def test_every_stream_has_the_list_at_first_and_each_change_in_its_order(root: Path) -> None:
    async with driver_with_health(root) as driver, dialled(driver) as wire:
        driver.health.set([GOOD])
        async with aclosing(wire.stream(PATH, b"")) as one:
            assert seen(await anext(one)) == [("pool", "a", 1, 20, "")]
            driver.health.set([BAD])
            async with aclosing(wire.stream(PATH, b"")) as two:
                assert seen(await anext(two)) == [("pool", "a", 2, 0, "hot")]
                assert driver.health.streams == 2
                driver.health.set([])
                assert [seen(await anext(one)), seen(await anext(one))] == [[("pool", "a", 2, 0, "hot")], []]
                assert seen(await anext(two)) == []
                assert driver.health.reports == ()
        with deadline():
            await driver.health.until_streams(0)


async def test_streams_end_cleanly_or_with_a_status_and_later_ones_work(root: Path) -> None:
    async with driver_with_health(root) as driver, dialled(driver) as wire:
        for code, error in (("", PluginUnavailable), ("FAILED_PRECONDITION", PluginRefused)):
            async with aclosing(wire.stream(PATH, b"")) as stream:
                await anext(stream)
                driver.health.end(code, "enough")
                with pytest.raises(error, match="enough" if code else "closed the stream"):
                    await anext(stream)


async def test_a_status_that_does_not_exist_ends_nothing(root: Path) -> None:
    async with driver_with_health(root) as driver:
        with pytest.raises(InvalidInput, match="no gRPC status 'internal': did you mean 'INTERNAL'"):
            driver.health.end("internal")


async def test_any_bytes_can_be_sent(root: Path) -> None:
    async with driver_with_health(root) as driver, dialled(driver) as wire:
        async with aclosing(wire.stream(PATH, b"")) as stream:
            await anext(stream)
            driver.health.send(GARBAGE)
            assert await anext(stream) == GARBAGE


async def test_the_list_is_repeated_if_wanted(root: Path) -> None:
    async with driver_with_health(root) as driver, dialled(driver) as wire:
        driver.health.set([GOOD])
        driver.health.every = 0.01
        async with aclosing(wire.stream(PATH, b"")) as stream:
            lists = [seen(await anext(stream)) for _ in range(3)]
        assert lists == [[("pool", "a", 1, 20, "")]] * 3


async def test_a_stream_can_be_made_to_fail_and_is_a_call(root: Path) -> None:
    async with driver_with_health(root) as driver, dialled(driver) as wire:
        driver.fail(WATCH, "UNIMPLEMENTED", times=1)
        with pytest.raises(PluginRefused):
            await anext(wire.stream(PATH, b""))
        async with aclosing(wire.stream(PATH, b"")) as stream:
            assert seen(await anext(stream)) == []
        assert [call.service for call in driver.asked(WATCH)] == ["v1alpha1.DRAResourceHealth"] * 2
