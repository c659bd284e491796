from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import create_task_group

from devlet.errors import DevletError, InvalidInput, PluginUnavailable, Unavailable
from devlet.kit.parts import running
from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName
from devlet.plugins import kept_connection
from devlet.plugins.dra import ClaimRef, HealthService, Service
from devlet.plugins.dra_driver import Settings
from devlet.plugins.dra_registry import TYPE, DraRegistry
from devlet.plugins.dra_services import prepare_path
from devlet.plugins.registration import PluginWatcher
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline
from devlet.wire.dra_v1 import api_pb2 as pb
from devlet.wire.pluginregistration import api_pb2 as pb_registration

if TYPE_CHECKING:
    from tests.unit.plugins.conftest import Context, GrpcServer, Serve

pytestmark = pytest.mark.anyio

GPU, NIC = DriverName("gpu.example.com"), DriverName("nic.example.com")
V1 = ["v1.DRAPlugin"]
FAST = Settings(connection=kept_connection.Settings(look=0.01))
CLAIM = ClaimRef("default", ClaimName("c"), ClaimUID("u"))


@asynccontextmanager
async def registry(clock: FakeClock | None = None) -> AsyncIterator[DraRegistry]:
    made = DraRegistry(clock or FakeClock(), FAST)
    async with running(made.run):
        yield made


async def when(drivers: DraRegistry, holds: Callable[[], bool]) -> None:
    """Check only when the version has grown: it must grow for everything that is awaited."""
    with deadline():
        seen = drivers.version
        while not holds():
            seen = await drivers.changed(seen)


def endpoints(drivers: DraRegistry) -> list[str]:
    return [driver.endpoint.name for driver in drivers.instances()]


def problem(drivers: DraRegistry, name: str, endpoint: Path, versions: list[str]) -> str:
    with pytest.raises(InvalidInput) as refused:
        drivers.validate(name, endpoint, versions)
    return str(refused.value)


def not_picked(drivers: DraRegistry, name: str) -> str:
    with pytest.raises(PluginUnavailable) as refused:
        drivers.pick(DriverName(name))
    return refused.value.message


@pytest.mark.spec("DN-11.21")
async def test_an_invalid_driver_name_is_refused(root: Path) -> None:
    drivers = DraRegistry(FakeClock())
    drivers.validate(GPU, root / "s", V1)
    assert problem(drivers, "", root / "s", V1) == "driver name is empty"
    for name in ("../gpu", "gpu_example", "a/b", "a..b", "x" * 64, "ä.example.com"):
        assert problem(drivers, name, root / "s", V1).startswith(f"driver name {name!r}: ")
    assert len(problem(drivers, "/" * 1_000, root / "s", V1)) < 1_000


@pytest.mark.spec("DN-11.21")
async def test_an_invalid_endpoint_is_refused(root: Path) -> None:
    drivers = DraRegistry(FakeClock())
    (root / "file").touch()
    prefix = "DRA driver gpu.example.com: the endpoint"
    assert problem(drivers, GPU, Path("s"), V1) == f"{prefix} s is not an absolute path"
    assert problem(drivers, GPU, root / "file", V1) == f"{prefix} {root}/file is a file, not a socket"


@pytest.mark.spec("DN-11.21")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_an_endpoint_of_another_user_is_refused(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s"))
        os.chown(root / "s", 65534, -1)
        assert "belongs to uid 65534" in problem(DraRegistry(FakeClock()), GPU, root / "s", V1)


@pytest.mark.spec("DN-10.R01")
async def test_a_driver_without_a_known_service_is_refused(root: Path) -> None:
    async with registry() as drivers:
        text = "DRA driver gpu.example.com: the list of supported versions is empty"
        assert problem(drivers, GPU, root / "s", []).startswith(text)
        assert "[v2.DRAPlugin] is known" in problem(drivers, GPU, root / "s", ["v2.DRAPlugin"])
        with pytest.raises(InvalidInput):
            await drivers.register(GPU, root / "s", ["v2.DRAPlugin"])
        assert drivers.instances() == [] and drivers.version == 0


@pytest.mark.spec("DN-1.7c")
async def test_a_driver_of_an_old_api_is_called_as_configured(root: Path) -> None:
    drivers = DraRegistry(FakeClock(), legacy={GPU: Service.V1ALPHA2})
    async with running(drivers.run):
        await drivers.register(GPU, root / "s", ["1.0.0"])
        assert drivers.pick(GPU).service is Service.V1ALPHA2
        await drivers.register(NIC, root / "s", ["1.0.0"])
        assert drivers.pick(NIC).offer.services == (Service.V1, Service.V1BETA1, Service.V1ALPHA4)


async def test_a_driver_is_registered_with_what_it_advertises(root: Path) -> None:
    advertised = ["v1alpha1.DRAResourceHealth", "v1beta1.DRAPlugin", "v1.DRAPlugin"]
    async with registry() as drivers:
        await drivers.register(GPU, root / "s", advertised)
        record = drivers.records()[0]
        assert (record.driver, record.service, record.health) == (GPU, Service.V1, HealthService.V1ALPHA1)
        assert record.advertised == tuple(advertised)


@pytest.mark.spec("DN-2.1")
async def test_a_driver_can_be_registered_only_while_the_registry_runs(root: Path) -> None:
    drivers = DraRegistry(FakeClock())
    with pytest.raises(Unavailable, match=r"DRA driver gpu\.example\.com cannot be registered"):
        await drivers.register(GPU, root / "s", V1)
    async with running(drivers.run):
        await drivers.register(GPU, root / "s", V1)
    assert drivers.instances() == []
    with pytest.raises(DevletError):
        await drivers.register(GPU, root / "s", V1)


@pytest.mark.spec("DN-10.R05", "DN-2.2a")
async def test_the_newest_instance_is_picked_even_after_the_first_is_removed(root: Path) -> None:
    async with registry() as drivers:
        await drivers.register(GPU, root / "old", V1)
        await drivers.register(GPU, root / "new", V1)
        assert drivers.pick(GPU).endpoint == root / "new"
        assert endpoints(drivers) == ["old", "new"]
        assert [record.preferred for record in drivers.records()] == [False, True]
        await drivers.deregister(GPU, root / "old")
        assert drivers.pick(GPU).endpoint == root / "new" and endpoints(drivers) == ["new"]


@pytest.mark.spec("DN-2.3")
async def test_a_connected_instance_is_picked_before_a_newer_disconnected_one(root: Path, serve: Serve) -> None:
    async with registry() as drivers:
        for name in ("a", "b", "c"):
            await drivers.register(GPU, root / name, V1)
        assert not drivers.is_usable(GPU) and drivers.pick(GPU).endpoint.name == "c"
        async with serve(root / "a"):
            await when(drivers, lambda: drivers.pick(GPU).endpoint.name == "a")
            assert drivers.is_usable(GPU)
            async with serve(root / "b"):
                await when(drivers, lambda: drivers.pick(GPU).endpoint.name == "b")
                assert [record.connected for record in drivers.records()] == [True, True, False]
            await when(drivers, lambda: drivers.pick(GPU).endpoint.name == "a")
        await when(drivers, lambda: not drivers.is_usable(GPU))
        assert drivers.pick(GPU).endpoint.name == "c" and endpoints(drivers) == ["a", "b", "c"]


@pytest.mark.spec("DN-10.R06")
async def test_the_same_endpoint_twice_is_refused_for_one_driver_but_not_for_two(root: Path) -> None:
    async with registry() as drivers:
        await drivers.register(GPU, root / "s", V1)
        with pytest.raises(InvalidInput) as refused:
            await drivers.register(GPU, root / "s", V1)
        assert str(refused.value) == f"DRA driver gpu.example.com: endpoint {root}/s already registered"
        await drivers.register(NIC, root / "s", V1)
        await drivers.deregister(GPU, root / "s")
        assert [driver.name for driver in drivers.instances()] == [NIC]
        await drivers.register(GPU, root / "s", V1)


@pytest.mark.spec("DN-10.R07", "DN-10.R08")
async def test_a_driver_that_is_not_registered_cannot_be_picked_and_neither_can_an_empty_name(root: Path) -> None:
    async with registry() as drivers:
        assert not_picked(drivers, GPU) == "DRA driver gpu.example.com is not registered"
        await drivers.register(GPU, root / "s", V1)
        await drivers.deregister(GPU, root / "s")
        assert not_picked(drivers, GPU) == "DRA driver gpu.example.com is not registered"
        assert not_picked(drivers, "") == "driver name is empty"
        assert not drivers.is_usable(GPU)


@pytest.mark.spec("DN-10.R09")
async def test_deregistering_twice_or_an_unknown_instance_has_no_effect(root: Path) -> None:
    async with registry() as drivers:
        await drivers.register(GPU, root / "a", V1)
        await drivers.register(GPU, root / "b", V1)
        await drivers.deregister(GPU, root / "a")
        version = drivers.version
        await drivers.deregister(GPU, root / "a")
        await drivers.deregister(NIC, root / "b")
        assert endpoints(drivers) == ["b"] and drivers.version == version


@pytest.mark.spec("DN-2.2b")
async def test_calls_to_a_deregistered_instance_fail_even_those_under_way(root: Path, serve: Serve) -> None:
    asked = anyio.Event()
    problems: list[str] = []

    async def hang(request: bytes, context: Context) -> bytes:
        asked.set()
        await anyio.sleep_forever()
        return b""

    async def prepare() -> None:
        try:
            await driver.prepare([CLAIM])
        except PluginUnavailable as e:
            problems.append(e.message)

    async with serve(root / "s") as server, registry() as drivers, create_task_group() as tasks:
        server.unary[prepare_path(Service.V1)] = hang
        await drivers.register(GPU, root / "s", V1)
        driver = drivers.pick(GPU)
        tasks.start_soon(prepare)
        await asked.wait()
        await drivers.deregister(GPU, root / "s")
        assert len(problems) == 1
        await prepare()
    assert problems == [f"endpoint {root}/s has been stopped"] * 2


@pytest.mark.spec("DN-2.4d")
async def test_a_lost_connection_does_not_deregister_and_the_service_may_restart_alone(
    root: Path, serve: Serve
) -> None:
    async with serve(root / "s") as server, registry() as drivers:
        response = pb.NodePrepareResourcesResponse()
        response.claims["u"].SetInParent()
        server.unary[prepare_path(Service.V1)] = response.SerializeToString()
        await drivers.register(GPU, root / "s", V1)
        await when(drivers, lambda: drivers.is_usable(GPU))
        for _ in range(3):
            await server.stop()
            await when(drivers, lambda: not drivers.is_usable(GPU))
            assert endpoints(drivers) == ["s"]
            with pytest.raises(PluginUnavailable):
                await drivers.pick(GPU).prepare([CLAIM])
            await server.start()
            await when(drivers, lambda: drivers.is_usable(GPU))
            assert await drivers.pick(GPU).prepare([CLAIM]) == {"u": ()}


@pytest.mark.spec("DN-2.7")
async def test_the_end_of_the_registry_closes_all_connections(root: Path, serve: Serve) -> None:
    async with serve(root / "a"), serve(root / "b"):
        async with registry() as drivers:
            await drivers.register(GPU, root / "a", V1)
            await drivers.register(NIC, root / "b", V1)
            instances = drivers.instances()
            await when(drivers, lambda: drivers.is_usable(GPU) and drivers.is_usable(NIC))
            version = drivers.version
        assert [driver.is_connected for driver in instances] == [False, False]
        assert drivers.version == version and drivers.records() == []
        for driver in instances:
            with pytest.raises(PluginUnavailable, match="has been stopped"):
                await driver.prepare([CLAIM])


async def test_a_late_wait_does_not_miss_a_change(root: Path) -> None:
    seen: list[int] = []

    async def follow() -> None:
        version = 0
        while version < 6:
            version = await drivers.changed(version)
            seen.append(version)

    async with registry() as drivers:
        async with create_task_group() as tasks:
            tasks.start_soon(follow)
            for _ in range(3):
                await drivers.register(GPU, root / "s", V1)
                await drivers.deregister(GPU, root / "s")
        assert seen[-1] == drivers.version == 6 and seen == sorted(set(seen))
        assert await drivers.changed(5) == await drivers.changed(-1) == 6


async def test_several_tasks_may_wait_for_the_same_change(root: Path) -> None:
    seen: list[int] = []

    async def wait() -> None:
        seen.append(await drivers.changed(0))

    async with registry() as drivers, create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await drivers.register(GPU, root / "s", V1)
        with deadline():
            while len(seen) < 3:
                await anyio.lowlevel.checkpoint()
    assert seen == [1, 1, 1]


@pytest.mark.spec("DN-12.2")
async def test_each_call_is_observed_with_its_driver(root: Path, serve: Serve) -> None:
    heard: list[tuple[str, str, str]] = []

    def observe(driver: DriverName, method: str, code: str, seconds: float) -> None:
        assert seconds > 0
        heard.append((driver, method, code))

    drivers = DraRegistry(FakeClock(), FAST, observe=observe)
    async with serve(root / "s") as server, running(drivers.run):
        server.unary[prepare_path(Service.V1)] = b""
        await drivers.register(GPU, root / "s", V1)
        await drivers.pick(GPU).prepare([CLAIM])
    assert heard == [(GPU, prepare_path(Service.V1), "OK")]


def introduce(server: GrpcServer, name: str, endpoint: Path) -> None:
    info = pb_registration.PluginInfo(type=TYPE, name=name, endpoint=str(endpoint), supported_versions=V1)
    server.unary["/pluginregistration.Registration/GetInfo"] = info.SerializeToString()
    server.unary["/pluginregistration.Registration/NotifyRegistrationStatus"] = b""


@pytest.mark.spec("DN-2.1")
async def test_the_watcher_of_the_registry_directory_registers_and_deregisters(root: Path, serve: Serve) -> None:
    clock = FakeClock()
    path = root / "registry" / "gpu-reg.sock"
    path.parent.mkdir()
    async with serve(path) as server, registry(clock) as drivers:
        introduce(server, GPU, root / "dra.sock")
        watcher = PluginWatcher(path.parent, {TYPE: drivers}, clock=clock)
        async with running(watcher.run):
            await when(drivers, lambda: endpoints(drivers) == ["dra.sock"])
            path.unlink()
            await when(drivers, lambda: not endpoints(drivers))
