from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.errors import InvalidInput, PluginRefused, PluginUnavailable
from devlet.kit.parts import running
from devlet.objects.identifiers import ClaimName, ClaimUID
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.channels import Connection, connection, target
from devlet.plugins.dra import ClaimProblem, ClaimRef, HealthService, Service
from devlet.testing.fake_dra_driver import (
    GET_INFO,
    NOTIFY,
    PREPARE,
    UNPREPARE,
    Call,
    FakeDraDriver,
    large_answer,
)
from devlet.testing.waiting import deadline
from devlet.wire.dra_v1 import api_pb2 as pb
from devlet.wire.dra_v1alpha2 import api_pb2 as pb_v1alpha2
from devlet.wire.pluginregistration import api_pb2 as pb_registration

pytestmark = pytest.mark.anyio

V1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
REGISTRATION = "/pluginregistration.Registration"
OPTIONS = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
TRAIN = ClaimRef("default", ClaimName("train"), ClaimUID("u1"))


def dialled(path: Path) -> AbstractAsyncContextManager[Connection]:
    return connection("p", path, within=60, max_message=1 << 20)


def sockets(root: Path) -> list[Path]:
    return list(root.rglob("*.sock"))


def claims(*asked: ClaimRef) -> bytes:
    wire = [pb.Claim(namespace=each.namespace, name=each.name, uid=each.uid) for each in asked]
    return pb.NodePrepareResourcesRequest(claims=wire).SerializeToString()


async def prepare(wire: Connection, claim: ClaimRef = TRAIN) -> pb.NodePrepareResourceResponse:
    blob = await wire.call(f"{V1}/NodePrepareResources", claims(claim), timeout=60)
    return pb.NodePrepareResourcesResponse.FromString(blob).claims[claim.uid]


async def info(driver: FakeDraDriver) -> pb_registration.PluginInfo:
    async with dialled(driver.registry_path) as registrar:
        return pb_registration.PluginInfo.FromString(await registrar.call(f"{REGISTRATION}/GetInfo", b"", timeout=60))


async def notify(driver: FakeDraDriver, error: str = "") -> None:
    status = pb_registration.RegistrationStatus(plugin_registered=not error, error=error)
    async with dialled(driver.registry_path) as registrar:
        await registrar.call(f"{REGISTRATION}/NotifyRegistrationStatus", status.SerializeToString(), timeout=60)


async def test_it_is_found_where_drivers_are_and_says_what_it_is(root: Path) -> None:
    async with FakeDraDriver(root, "a.example.com", health_services=[HealthService.V1]) as driver:
        assert driver.registry_path == root / "plugins_registry" / "a.example.com-reg.sock"
        said = await info(driver)
        assert (said.type, said.name, said.endpoint) == (
            "DRAPlugin",
            "a.example.com",
            str(root / "plugins" / "a.example.com" / "dra.sock"),
        )
        assert list(said.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth"]
        assert driver.calls == [Call(GET_INFO)]
    assert not sockets(root)


async def test_what_it_says_of_itself_can_be_anything(root: Path) -> None:
    async with FakeDraDriver(root, versions=[]) as driver:
        assert list((await info(driver)).supported_versions) == []
        driver.type, driver.name, driver.endpoint, driver.versions = "CSIPlugin", "", "x", ["nonsense", "9"]
        said = await info(driver)
        assert (said.type, said.name, said.endpoint, list(said.supported_versions)) == (
            "CSIPlugin",
            "",
            "x",
            ["nonsense", "9"],
        )


async def test_old_drivers_advertise_a_number_and_v1alpha4_a_name_of_its_own(root: Path) -> None:
    async with FakeDraDriver(root, services=[Service.V1ALPHA3, Service.V1ALPHA2]) as driver:
        assert list((await info(driver)).supported_versions) == ["1.0.0"]
        driver.services = [Service.V1ALPHA4]
        assert list((await info(driver)).supported_versions) == ["v1alpha3.NodeService"]


def test_two_versions_with_the_same_methods_are_refused(root: Path) -> None:
    with pytest.raises(InvalidInput, match="serve one of them"):
        FakeDraDriver(root, services=[Service.V1ALPHA4, Service.V1ALPHA3])


async def test_it_hears_how_its_registration_ended(root: Path) -> None:
    async with FakeDraDriver(root) as driver:
        driver.fail(NOTIFY, "UNAVAILABLE", times=1)
        with pytest.raises(PluginUnavailable):
            await notify(driver)
        assert driver.statuses == []
        await notify(driver, "not now")
        await notify(driver)
        with deadline():
            await driver.until_registered()
            assert await driver.until_refused() == "not now"
        assert driver.statuses == [(False, "not now"), (True, "")]
        assert [call.text for call in driver.asked(NOTIFY)] == ["", "not now", ""]


async def test_a_claim_gets_one_device_for_all_requests_and_a_cdi_file(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver.path) as wire:
        (device,) = (await prepare(wire)).devices
        assert device == pb.Device(
            pool_name="pool", device_name="dev-train", cdi_device_ids=["gpu.example.com/claim=u1"]
        )
        assert driver.asked(PREPARE) == [Call(PREPARE, (TRAIN,))]
        assert [(call.service, call.path) for call in driver.calls] == [("v1", f"{V1}/NodePrepareResources")]
        assert [path.name for path in (root / "cdi").iterdir()] == ["gpu.example.com-u1.json"]
        await wire.call(f"{V1}/NodeUnprepareResources", claims(TRAIN), timeout=60)
        assert not driver.prepared and not list((root / "cdi").iterdir())
        assert driver.asked(UNPREPARE) == [Call(UNPREPARE, (TRAIN,))]


async def test_preparing_again_answers_the_same_whatever_was_set_since(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver.path) as wire:
        first = await prepare(wire)
        driver.set_devices("train", [])
        assert await prepare(wire) == first


async def test_what_a_claim_gets_is_set_by_its_uid_or_name_or_decided_by_a_handler(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver.path) as wire:
        odd = PreparedDevice("", "d", requests=("undeclared",), cdi_devices=("x", "x"), share="")
        driver.set_devices("train", ClaimProblem("not this one"))
        driver.set_devices("u1", [odd])
        assert list((await prepare(wire)).devices) == [
            pb.Device(device_name="d", request_names=["undeclared"], cdi_device_ids=["x", "x"], share_id="")
        ]
        other = ClaimRef("default", ClaimName("train"), ClaimUID("u2"))
        assert (await prepare(wire, other)).error == "not this one"

        async def handler(claim: ClaimRef) -> list[PreparedDevice] | None:
            return [PreparedDevice("p", f"for-{claim.uid}")] if claim.name == "a" else None

        driver.handler = handler
        driver.set_all_devices({})
        answers = [await prepare(wire, ClaimRef("ns", ClaimName(name), ClaimUID(f"u-{name}"))) for name in "ab"]
        assert [answer.devices[0].device_name for answer in answers] == ["for-u-a", "dev-b"]


async def test_in_the_oldest_versions_the_problem_of_a_claim_is_the_status_of_the_call(root: Path) -> None:
    async with FakeDraDriver(root, services=[Service.V1ALPHA2]) as driver, dialled(driver.path) as wire:
        request = pb_v1alpha2.NodePrepareResourceRequest(namespace="default", claim_uid="u1", claim_name="train")
        driver.fail_claim("train", "broken", times=1)
        with pytest.raises(PluginRefused, match="broken"):
            await wire.call("/v1alpha2.Node/NodePrepareResource", request.SerializeToString(), timeout=60)
        blob = await wire.call("/v1alpha2.Node/NodePrepareResource", request.SerializeToString(), timeout=60)
        answer = pb_v1alpha2.NodePrepareResourceResponse.FromString(blob)
        assert list(answer.cdi_devices) == ["gpu.example.com/claim=u1"]
        assert driver.asked(PREPARE) == [Call(PREPARE, (TRAIN,))] * 2


async def test_unpreparing_a_claim_may_fail_and_then_it_stays_prepared(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver.path) as wire:
        await prepare(wire)
        driver.fail_claim("train", "busy", method=UNPREPARE, times=1)
        blob = await wire.call(f"{V1}/NodeUnprepareResources", claims(TRAIN), timeout=60)
        assert pb.NodeUnprepareResourcesResponse.FromString(blob).claims["u1"].error == "busy"
        assert "u1" in driver.prepared


async def test_an_answer_may_be_larger_than_clients_take(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver.path) as wire:
        driver.answer(PREPARE, large_answer(2 << 20))
        with pytest.raises(PluginRefused, match="larger"):
            await prepare(wire)


async def test_its_sockets_start_and_stop_on_their_own(root: Path) -> None:
    async with FakeDraDriver(root, autostart=False) as driver:
        assert not sockets(root)
        await driver.start_registrar()
        assert (await info(driver)).endpoint == str(driver.path)
        assert not driver.path.exists()
        await driver.start_service()
        await driver.stop_registrar()
        assert not driver.registry_path.exists()
        async with dialled(driver.path) as wire:
            await prepare(wire)
        await driver.stop_service()
        assert not driver.path.exists()
        await driver.start()
        async with dialled(driver.path) as wire:
            assert (await prepare(wire)).devices
        await driver.stop()
        await driver.stop()
        assert not sockets(root)


async def test_a_crash_leaves_sockets_without_listeners(root: Path) -> None:
    async with FakeDraDriver(root) as driver:
        await driver.crash()
        for path in (driver.path, driver.registry_path):
            assert path.is_socket()
            with pytest.raises(PluginUnavailable, match="no listener"):
                async with connection("p", path, within=0.01, max_message=1):
                    pass
        await driver.start()
        assert (await info(driver)).name == driver.name


async def test_a_driver_starts_only_in_its_block(root: Path) -> None:
    with pytest.raises(InvalidInput, match="inside its block"):
        await FakeDraDriver(root).start()


async def test_it_runs_as_a_part(root: Path) -> None:
    driver = FakeDraDriver(root)
    async with running(driver.run):
        assert (await info(driver)).name == driver.name
    assert not driver.path.exists()


async def test_its_service_may_be_anywhere_and_beside_the_registration(root: Path) -> None:
    path = root / "plugins_registry" / "dra.sock"
    async with FakeDraDriver(root, service_path=path) as driver:
        assert (await info(driver)).endpoint == str(path) and path.is_socket()
    async with FakeDraDriver(root, one_socket=True) as driver:
        assert (await info(driver)).endpoint == ""
        async with dialled(driver.registry_path) as wire:
            assert (await prepare(wire)).devices


async def test_two_instances_have_sockets_of_their_own_and_may_share_their_claims(root: Path) -> None:
    one, two = (FakeDraDriver(root, instance=name, keep=True) for name in ("a", "b"))
    async with one, two:
        assert (one.registry_path.name, one.path.name) == ("gpu.example.com-a-reg.sock", "dra-a.sock")
        async with dialled(one.path) as wire:
            first = await prepare(wire)
        two.set_devices("train", [])
        async with dialled(two.path) as wire:
            assert await prepare(wire) == first
        assert set(two.prepared) == {"u1"}


async def test_connections_are_counted_and_can_be_cut(root: Path) -> None:
    async with FakeDraDriver(root) as driver:
        for number in (1, 2):
            async with grpc.aio.insecure_channel(target(driver.path), options=OPTIONS) as channel:
                ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"{V1}/NodePrepareResources")
                for _ in range(3):
                    await ask(claims(TRAIN))
                assert driver.connections == number
                driver.service.proxy.cut()
                with deadline():
                    await driver.service.proxy.until_open(0)


async def test_an_error_in_its_block_comes_out_as_it_is(root: Path) -> None:
    driver = FakeDraDriver(root)
    with pytest.raises(KeyError):
        async with driver:
            raise KeyError
    assert not sockets(root)


async def test_it_stops_when_its_block_is_cancelled(root: Path) -> None:
    with anyio.CancelScope() as scope:
        async with FakeDraDriver(root):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught and not sockets(root)
