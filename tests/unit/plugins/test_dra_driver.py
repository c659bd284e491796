from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import grpc
import pytest
from anyio import create_task_group

from devlet.errors import PluginRefused, PluginUnavailable, PluginUnimplemented
from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins import kept_connection
from devlet.plugins.dra import ClaimProblem, ClaimRef, DeviceReport, DriverRecord, HealthService, Service
from devlet.plugins.dra_driver import DraDriver, Offer, Settings
from devlet.plugins.dra_services import health_path, prepare_path, unprepare_path
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import until
from devlet.wire.dra_health import api_pb2 as pb_health
from devlet.wire.dra_v1 import api_pb2 as pb
from devlet.wire.dra_v1alpha1 import api_pb2 as pb_v1alpha1
from devlet.wire.dra_v1alpha2 import api_pb2 as pb_v1alpha2
from devlet.wire.dra_v1alpha3 import api_pb2 as pb_v1alpha3

if TYPE_CHECKING:
    from tests.unit.plugins.conftest import Context, GrpcServer, Serve

pytestmark = pytest.mark.anyio

NAME = DriverName("gpu.example.com")
ALL = (Service.V1, Service.V1BETA1, Service.V1ALPHA4)
ONE = ClaimRef("default", ClaimName("one"), ClaimUID("u1"), ("v/c=d",))
TWO = ClaimRef("default", ClaimName("two"), ClaimUID("u2"))
FAST = kept_connection.Settings(look=0.01)


class Driver(DraDriver):
    """A driver and what was observed of it."""

    def __init__(
        self,
        path: Path,
        services: tuple[Service, ...],
        health: HealthService | None = None,
        call: float = 5.0,
        clock: FakeClock | None = None,
    ) -> None:
        self.heard: list[tuple[str, str]] = []
        self.changes: list[bool] = []
        offer = Offer(NAME, path, ("advertised",), services, health)
        super().__init__(
            offer,
            clock or FakeClock(),
            Settings(call, FAST),
            on_change=lambda: self.changes.append(self.is_connected),
            observe=lambda method, code, seconds: self.heard.append((method, code)),
        )


@asynccontextmanager
async def running(driver: Driver) -> AsyncIterator[Driver]:
    async with create_task_group() as tasks:
        tasks.start_soon(driver.run)
        yield driver
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def serving(
    root: Path, serve: Serve, *services: Service, health: HealthService | None = None, call: float = 5.0
) -> AsyncIterator[tuple[GrpcServer, Driver]]:
    """Return a server without methods, and a driver that advertises these services."""
    driver = Driver(root / "s", services or (Service.V1,), health, call)
    async with serve(root / "s") as server, running(driver):
        yield server, driver


def good(*uids: str) -> bytes:
    response = pb.NodePrepareResourcesResponse()
    for uid in uids:
        response.claims[uid].devices.add(pool_name="pool", device_name=f"dev-{uid}", cdi_device_ids=["v/c=d"])
    return response.SerializeToString()


def device(uid: str) -> tuple[PreparedDevice, ...]:
    return (PreparedDevice("pool", f"dev-{uid}", None, None, ("v/c=d",)),)


async def abort(code: grpc.StatusCode, context: Context) -> bytes:
    return await context.abort(code, "broken")


@pytest.mark.parametrize("service", ALL)
async def test_claims_are_prepared_and_unprepared_in_one_call_each(root: Path, serve: Serve, service: Service) -> None:
    async with serving(root, serve, service) as (server, driver):
        server.unary[prepare_path(service)] = good("u1", "u2")
        response = pb.NodeUnprepareResourcesResponse()
        response.claims["u1"].error = "in use"
        response.claims["u2"].SetInParent()
        server.unary[unprepare_path(service)] = response.SerializeToString()
        assert await driver.prepare([ONE, TWO]) == {"u1": device("u1"), "u2": device("u2")}
        assert await driver.unprepare([ONE, TWO]) == {"u1": ClaimProblem("in use"), "u2": None}
    assert [path for path, _ in server.calls] == [prepare_path(service), unprepare_path(service)]
    request = pb.NodePrepareResourcesRequest.FromString(server.calls[0][1])
    assert [(c.namespace, c.name, c.uid) for c in request.claims] == [
        ("default", "one", "u1"),
        ("default", "two", "u2"),
    ]
    assert driver.heard == [(prepare_path(service), "OK"), (unprepare_path(service), "OK")]


async def test_v1alpha3_is_called_with_its_own_messages(root: Path, serve: Serve) -> None:
    response = pb_v1alpha3.NodePrepareResourcesResponse()
    response.claims["u1"].cdi_devices.append("v/c=a")
    async with serving(root, serve, Service.V1ALPHA3) as (server, driver):
        server.unary["/v1alpha3.Node/NodePrepareResources"] = response.SerializeToString()
        answer = await driver.prepare([ONE])
    assert answer == {"u1": (PreparedDevice("", "", None, None, ("v/c=a",)),)}


@pytest.mark.spec("DN-1.5c")
@pytest.mark.parametrize("service", [Service.V1ALPHA2, Service.V1ALPHA1])
async def test_the_oldest_services_are_called_concurrently_once_per_claim_with_errors_per_claim(
    root: Path, serve: Serve, service: Service
) -> None:
    both = anyio.Event()

    async def prepare(request: bytes, context: Context) -> bytes:
        if len(server.calls) == 2:
            both.set()
        await both.wait()
        if pb_v1alpha2.NodePrepareResourceRequest.FromString(request).claim_uid == "u2":
            return await abort(grpc.StatusCode.INTERNAL, context)
        return pb_v1alpha2.NodePrepareResourceResponse(cdi_devices=["v/c=a"]).SerializeToString()

    async with serving(root, serve, service) as (server, driver):
        server.unary[prepare_path(service)] = prepare
        server.unary[unprepare_path(service)] = b""
        assert await driver.prepare([ONE, TWO]) == {
            "u1": (PreparedDevice("", "", None, None, ("v/c=a",)),),
            "u2": ClaimProblem("NodePrepareResource failed: broken"),
        }
        assert await driver.unprepare([ONE]) == {"u1": None}
        asked = pb_v1alpha1.NodeUnprepareResourceRequest.FromString(server.calls[2][1])
        assert list(asked.cdi_devices) == (["v/c=d"] if service is Service.V1ALPHA1 else [])
        del server.unary[unprepare_path(service)]
        assert list(await driver.unprepare([TWO, ONE])) == ["u2", "u1"]
    assert sorted(driver.heard[:2]) == [(prepare_path(service), "Internal"), (prepare_path(service), "OK")]


@pytest.mark.spec("DN-1.7d")
async def test_a_missing_service_is_replaced_by_the_next_advertised_one_for_good(root: Path, serve: Serve) -> None:
    async with serving(root, serve, *ALL) as (server, driver):
        server.unary[prepare_path(Service.V1ALPHA4)] = good("u1")
        services = [driver.service]
        assert await driver.prepare([ONE]) == {"u1": device("u1")}
        services.append(driver.service)
        assert services == [Service.V1, Service.V1ALPHA4]
        await driver.prepare([ONE])
        tried = [(service, "Unimplemented") for service in (Service.V1, Service.V1BETA1)]
        last = (Service.V1ALPHA4, "OK")
        assert driver.heard == [(prepare_path(service), code) for service, code in [*tried, last, last]]


@pytest.mark.spec("DN-1.7d")
async def test_a_driver_that_was_updated_is_called_with_its_new_service(root: Path, serve: Serve) -> None:
    async with serving(root, serve, Service.V1, Service.V1BETA1) as (server, driver):
        server.unary = {prepare_path(Service.V1BETA1): good("u1")}
        await driver.prepare([ONE])
        server.unary = {prepare_path(Service.V1): good("u1")}
        assert await driver.prepare([ONE]) == {"u1": device("u1")}
        assert driver.service is Service.V1


@pytest.mark.spec("DN-10.R14")
async def test_a_driver_without_any_of_its_advertised_services_is_an_error(root: Path, serve: Serve) -> None:
    async with serving(root, serve, Service.V1, Service.V1BETA1) as (server, driver):
        server.unary[prepare_path(Service.V1ALPHA4)] = good("u1")
        with pytest.raises(PluginUnimplemented) as refused:
            await driver.prepare([ONE])
        assert str(refused.value) == (
            "plugin gpu.example.com: unknown service k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin, "
            "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin: NodePrepareResources failed: Method not found!"
        )
        assert driver.service is Service.V1


@pytest.mark.spec("DN-10.R15")
async def test_a_call_that_takes_too_long_ends_with_its_deadline(root: Path, serve: Serve) -> None:
    async def hang(request: bytes, context: Context) -> bytes:
        await anyio.sleep_forever()
        return b""

    async with serving(root, serve, Service.V1, call=0.1) as (server, driver):
        server.unary[prepare_path(Service.V1)] = hang
        with pytest.raises(PluginUnavailable, match=r"NodePrepareResources was not answered within 0\.1 s"):
            await driver.prepare([ONE])
        assert driver.heard == [(prepare_path(Service.V1), "DeadlineExceeded")]


@pytest.mark.spec("DN-11.28")
def test_a_call_may_take_45_seconds_by_default() -> None:
    assert Settings().call == 45.0


async def test_an_error_for_the_whole_call_is_reported_as_the_drivers(root: Path, serve: Serve) -> None:
    async with serving(root, serve) as (server, driver):
        server.unary[prepare_path(Service.V1)] = lambda _, context: abort(grpc.StatusCode.INTERNAL, context)
        with pytest.raises(PluginRefused, match=r"^plugin gpu\.example\.com: NodePrepareResources failed: broken$"):
            await driver.prepare([ONE])


@pytest.mark.spec("DN-1.3d")
async def test_an_invalid_answer_is_refused_as_a_whole(root: Path, serve: Serve) -> None:
    async with serving(root, serve) as (server, driver):
        server.unary[prepare_path(Service.V1)] = good("u1", "u9")
        with pytest.raises(PluginRefused, match=r"its answer to NodePrepareResources has an entry .* not asked .*'u9'"):
            await driver.prepare([ONE])
        server.unary[unprepare_path(Service.V1)] = b"\xff"
        with pytest.raises(PluginRefused, match="its answer to NodeUnprepareResources cannot be decoded"):
            await driver.unprepare([ONE])
        assert [code for _, code in driver.heard] == ["OK", "OK"]


async def test_a_large_answer_is_read_and_one_over_the_limit_is_refused(root: Path, serve: Serve) -> None:
    def answer(size: int) -> bytes:
        response = pb.NodePrepareResourcesResponse()
        for number in range(size):
            response.claims["u1"].devices.add(pool_name="pool", device_name=f"{number:0100}")
        return response.SerializeToString()

    async with serve(root / "s", options=[("grpc.max_send_message_length", -1)]) as server:
        async with running(Driver(root / "s", (Service.V1,))) as driver:
            server.unary[prepare_path(Service.V1)] = answer(5_000)
            devices = (await driver.prepare([ONE]))[ONE.uid]
            assert isinstance(devices, tuple) and len(devices) == 5_000
            server.unary[prepare_path(Service.V1)] = answer(160_000)
            with pytest.raises(PluginRefused, match="larger than max"):
                await driver.prepare([ONE])


async def test_many_claims_are_prepared_concurrently(root: Path, serve: Serve) -> None:
    async def prepare(request: bytes, context: Context) -> bytes:
        return good(*(c.uid for c in pb.NodePrepareResourcesRequest.FromString(request).claims))

    async def ask(number: int) -> None:
        claim = ClaimRef("default", ClaimName(f"c{number}"), ClaimUID(f"u{number}"))
        assert await driver.prepare([claim]) == {claim.uid: device(claim.uid)}

    async with serving(root, serve) as (server, driver):
        server.unary[prepare_path(Service.V1)] = prepare
        async with create_task_group() as tasks:
            for number in range(256):
                tasks.start_soon(ask, number)
        assert len(server.calls) == 256


def reported(*devices: tuple[str, str, int]) -> bytes:
    return pb_health.NodeWatchResourcesResponse(
        devices=[
            pb_health.DeviceHealth(
                device=pb_health.DeviceIdentifier(pool_name=pool, device_name=name),
                health=pb_health.HEALTHY,
                health_check_timeout_seconds=timeout,
            )
            for pool, name, timeout in devices
        ]
    ).SerializeToString()


@pytest.mark.spec("DN-10.R16")
@pytest.mark.parametrize("service", list(HealthService))
async def test_the_health_stream_delivers_and_then_ends(root: Path, serve: Serve, service: HealthService) -> None:
    async def watch(request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield reported(("p", "a", 10), ("p", "", 10))
        yield b""

    async with serving(root, serve, health=service) as (server, driver):
        server.streams[health_path(service)] = watch
        async with aclosing(driver.health()) as lists:
            assert await anext(lists) == (DeviceReport("p", "a", "Healthy", 10.0),)
            assert await anext(lists) == ()
            with pytest.raises(PluginUnavailable, match="NodeWatchResources ended: the plugin closed the stream"):
                await anext(lists)
        assert driver.heard == []


async def test_the_health_of_very_many_devices_is_read(root: Path, serve: Serve) -> None:
    async def watch(request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield reported(*(("pool", f"{number:032}", 0) for number in range(10_000)))

    async with serving(root, serve, health=HealthService.V1) as (server, driver):
        server.streams[health_path(HealthService.V1)] = watch
        async with aclosing(driver.health()) as lists:
            assert len(await anext(lists)) == 10_000


async def test_a_driver_without_a_health_service_differs_from_a_broken_one(root: Path, serve: Serve) -> None:
    async def watch(request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"\xff"

    async with serving(root, serve, health=HealthService.V1) as (server, driver):
        with pytest.raises(PluginUnimplemented, match="NodeWatchResources failed"):
            await anext(driver.health())
        server.streams[health_path(HealthService.V1)] = watch
        with pytest.raises(PluginRefused, match="its answer to NodeWatchResources cannot be decoded") as refused:
            await anext(driver.health())
        assert not isinstance(refused.value, PluginUnimplemented)
    with pytest.raises(PluginUnavailable, match="has been stopped"):
        await anext(driver.health())
    with pytest.raises(PluginUnimplemented, match="it advertises no health service"):
        await anext(Driver(root / "s", (Service.V1,)).health())


async def test_a_record_shows_since_when_the_driver_is_connected_or_why_it_is_not(root: Path, serve: Serve) -> None:
    async def connected() -> bool:
        return driver.is_connected

    def record(connected: bool, message: str = "") -> DriverRecord:
        return DriverRecord(
            driver=NAME,
            endpoint=root / "s",
            service=Service.V1,
            advertised=("advertised",),
            health=HealthService.V1,
            registered=start,
            connected=connected,
            since=clock.now(),
            preferred=True,
            message=message,
        )

    clock = FakeClock()
    start = clock.now()
    async with running(Driver(root / "s", (Service.V1,), HealthService.V1, clock=clock)) as driver:
        assert driver.record(preferred=True) == record(False, f"{root}/s does not exist")
        await clock.advance(5)
        async with serve(root / "s"):
            await until(connected)
            assert driver.record(preferred=True) == record(True)
            await clock.advance(5)
        await until(connected, lambda is_connected: not is_connected)
        assert driver.record(preferred=True) == record(False, f"{root}/s does not exist")
        assert driver.changes == [True, False]
