"""Answers of a driver come as they are."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devlet.errors import PluginRefused, PluginUnimplemented
from devlet.sanity.dra_client import DraClient, Ref, connected
from devlet.testing.fake_dra_driver import (
    ClaimProblem,
    DeviceReport,
    FakeDraDriver,
    HealthService,
    PreparedDevice,
    Service,
)

pytestmark = pytest.mark.anyio

TRAIN = Ref("default", "train", "uid-train")


@asynccontextmanager
async def client(driver: FakeDraDriver, service: str = "v1.DRAPlugin") -> AsyncIterator[DraClient]:
    async with connected(driver.name, driver.path, service, dial=5.0, answer=5.0) as made:
        yield made


@pytest.mark.parametrize("service", ["v1.DRAPlugin", "v1beta1.DRAPlugin"])
async def test_both_services_are_called(root: Path, service: str) -> None:
    async with FakeDraDriver(root) as driver, client(driver, service) as made:
        driver.set_devices("train", [PreparedDevice("pool", "", requests=("no/such",))])
        [device] = await made.prepared(TRAIN)
        assert (device.device_name, list(device.request_names)) == ("", ["no/such"])
        await made.unprepared(TRAIN)
        assert not driver.prepared


async def test_an_error_of_a_claim_is_an_error(root: Path) -> None:
    async with FakeDraDriver(root) as driver, client(driver) as made:
        driver.set_devices("train", ClaimProblem("too late"))
        with pytest.raises(PluginRefused, match="claim train: too late"):
            await made.prepared(TRAIN)


async def test_a_claim_that_is_not_answered_is_an_error(root: Path) -> None:
    async with FakeDraDriver(root) as driver, client(driver) as made:
        driver.skip_claim("train")
        with pytest.raises(PluginRefused, match="has no entry for claim train"):
            await made.prepared(TRAIN)


async def test_a_service_that_is_not_there_is_told(root: Path) -> None:
    async with FakeDraDriver(root, services=[Service.V1]) as driver, client(driver) as made:
        with pytest.raises(PluginUnimplemented):
            await made.by("v1beta1.DRAPlugin").prepare()


async def test_health_is_a_stream_of_lists(root: Path) -> None:
    async with (
        FakeDraDriver(root, health_services=[HealthService.V1ALPHA1]) as driver,
        client(driver) as made,
    ):
        driver.health.set([DeviceReport("pool", "gpu-3", "Unhealthy")])
        lists = made.health("v1alpha1.DRAResourceHealth")
        [device] = (await anext(lists)).devices
        assert (device.device.device_name, device.health) == ("gpu-3", 2)
        await lists.aclose()
