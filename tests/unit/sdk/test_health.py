"""Lists of health as the node hears them."""

from pathlib import Path
from typing import cast

import pytest

from devlet.errors import InvalidInput
from devlet.sdk.health import HEALTH_SERVICES, HealthService, _pause
from devlet.sdk.server import SocketServer
from devlet.sdk.values import DeviceHealth
from devlet.wire.dra_health import api_pb2 as pb
from tests.unit.sdk.conftest import stream

pytestmark = pytest.mark.anyio

HOT = DeviceHealth("pool", "red", "Unhealthy", "too hot", 9)


@pytest.mark.spec("DN-8.6a")
@pytest.mark.parametrize("service", HEALTH_SERVICES)
async def test_the_whole_list_comes_at_once_and_at_each_change(root: Path, service: str) -> None:
    health = HealthService()
    health.show([HOT, DeviceHealth("pool", "green")])
    async with (
        SocketServer(root / "s", [health.methods]).serving(),
        stream(root / "s", f"/{service}/NodeWatchResources") as lists,
    ):
        first = pb.NodeWatchResourcesResponse.FromString(await lists.read())
        assert [(d.device.pool_name, d.device.device_name, d.health) for d in first.devices] == [
            ("pool", "red", pb.UNHEALTHY),
            ("pool", "green", pb.HEALTHY),
        ]
        assert (first.devices[0].message, first.devices[0].health_check_timeout_seconds) == ("too hot", 9)
        health.show([])
        assert not pb.NodeWatchResourcesResponse.FromString(await lists.read()).devices


@pytest.mark.spec("DN-8.6b")
async def test_the_list_is_repeated_before_its_time_is_over(root: Path) -> None:
    health = HealthService()
    health.show([DeviceHealth("pool", "red", timeout=1)])
    async with (
        SocketServer(root / "s", [health.methods]).serving(),
        stream(root / "s", f"/{HEALTH_SERVICES[0]}/NodeWatchResources") as lists,
    ):
        assert await lists.read() and await lists.read()


@pytest.mark.spec("DN-8.6b")
async def test_a_list_whose_time_is_shorter_is_repeated_sooner(root: Path) -> None:
    health = HealthService()
    health.show([DeviceHealth("pool", "red", timeout=600)])
    async with (
        SocketServer(root / "s", [health.methods]).serving(),
        stream(root / "s", f"/{HEALTH_SERVICES[0]}/NodeWatchResources") as lists,
    ):
        assert await lists.read()
        health.show([DeviceHealth("pool", "red", timeout=1)])
        assert await lists.read() and await lists.read()


@pytest.mark.spec("DN-8.6b")
async def test_a_device_without_a_timeout_has_that_of_the_node() -> None:
    assert _pause([DeviceHealth("pool", "red", timeout=300), DeviceHealth("pool", "green")]) == 10
    assert _pause([DeviceHealth("pool", "red", timeout=300)]) == 100
    assert _pause([]) == 10


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (DeviceHealth("", "red"), "both the pool and the device need a name"),
        (DeviceHealth("pool", "red", "healthy"), "expected one of Healthy, Unhealthy, Unknown"),
        (DeviceHealth("pool", "red", timeout=-1), "timeout of -1 s is not valid"),
        (DeviceHealth("pool", "red", timeout=1 << 63), "timeout of 9223372036854775808 s is not valid"),
        (DeviceHealth("pool", "red", timeout=cast(int, 2.5)), "timeout: Expected `int`, got `float`"),
        (DeviceHealth("pool", "red", message=cast(str, None)), "message: Expected `str`, got `null`"),
        (DeviceHealth("pool", "red", cast(str, ["Healthy"])), "health: Expected `str`, got `array`"),
        (DeviceHealth(cast(str, 5), "red"), "pool: Expected `str`, got `int`"),
        (DeviceHealth("pool", "red\udcff"), "cannot be sent"),
        (cast(DeviceHealth, "red"), "'red' is not a DeviceHealth"),
    ],
)
async def test_what_the_node_could_not_understand_is_refused_and_the_last_list_stays(
    report: DeviceHealth, text: str
) -> None:
    health = HealthService()
    health.show([HOT])
    with pytest.raises(InvalidInput, match=text):
        health.show([report])
    assert health.board.value == (HOT,)


async def test_a_report_outside_a_list_is_reported() -> None:
    with pytest.raises(InvalidInput, match=r"health\(\) gave DeviceHealth.*, expected a list of DeviceHealth"):
        HealthService().show(cast(list[DeviceHealth], HOT))


async def test_a_long_message_is_cut_between_characters(root: Path) -> None:
    health = HealthService()
    health.show([DeviceHealth("pool", "red", message="é" * 1000)])
    async with (
        SocketServer(root / "s", [health.methods]).serving(),
        stream(root / "s", f"/{HEALTH_SERVICES[0]}/NodeWatchResources") as lists,
    ):
        message = pb.NodeWatchResourcesResponse.FromString(await lists.read()).devices[0].message
        assert message == "é" * 510 + "..." and len(message.encode()) <= 1024
