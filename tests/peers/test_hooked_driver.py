"""Kubernetes' own DRA driver, and that its faults do to callers what their names say."""

import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import InvalidInput, PluginError, PluginRefused, PluginUnavailable, Unavailable
from devlet.objects.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES
from devlet.plugins.channels import Connection, connection
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from devlet.wire.dra_health import api_pb2 as health
from devlet.wire.dra_v1 import api_pb2 as dra
from devlet.wire.pluginregistration import api_pb2 as registration
from tests.support.cluster_contract import specimens
from tests.support.peers.drivers import hooked_test_driver
from tests.support.peers.heartbeats import beating_node
from tests.support.peers.hooked_driver import AFTER, BEFORE, Call, HookedDriver, Method, Part, PreparedClaim

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

NAME = "test-driver.cdi.k8s.io"
SERVICE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
SECONDS = 60.0

Start = Callable[..., AbstractAsyncContextManager[HookedDriver]]


@pytest.fixture(scope="module")
async def api(peers: "Peers") -> AsyncIterator[EmbeddedApi]:
    peers.need("kubelet-claims")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with embedded_api(path) as running:
        yield running
    shutil.rmtree(path)


@pytest.fixture(scope="module")
async def cluster(api: EmbeddedApi) -> AsyncIterator[RemoteCluster]:
    settings = Settings(qps=0)
    async with connected(kubeconfig.connection([api.kubeconfig]), settings) as cluster, beating_node(cluster, "n1"):
        yield cluster


@pytest.fixture
async def claim(cluster: RemoteCluster) -> dra.Claim:
    """Allocated, to a device of the driver."""
    made = await cluster.create(RESOURCE_CLAIMS, specimens.claim(specimens.unique("c")), "default")
    name = made["metadata"]["name"]
    device = {"request": "gpu", "driver": NAME, "pool": "n1", "device": "device-00"}
    status = MergePatch({"status": {"allocation": {"devices": {"results": [device]}}}})
    await cluster.patch(RESOURCE_CLAIMS, name, status, "default", subresource="status")
    return dra.Claim(namespace="default", name=name, uid=made["metadata"]["uid"])


@pytest.fixture
def start(peers: "Peers", api: EmbeddedApi, cluster: RemoteCluster, root: Path) -> Start:
    return partial(hooked_test_driver, peers.binaries, root, api.kubeconfig, node_name="n1")


@pytest.fixture
async def driver(start: Start) -> AsyncIterator[HookedDriver]:
    async with start() as running:
        yield running


@pytest.fixture
async def service(driver: HookedDriver, root: Path) -> AsyncIterator[Connection]:
    async with dialled(root / "plugins" / NAME / "dra.sock") as open_connection:
        yield open_connection


def dialled(path: Path) -> AbstractAsyncContextManager[Connection]:
    return connection(NAME, path, within=SECONDS, max_message=1 << 20)


async def prepare(service: Connection, claim: dra.Claim, timeout: float = SECONDS) -> dra.NodePrepareResourceResponse:
    request = dra.NodePrepareResourcesRequest(claims=[claim])
    answer = await service.call(f"{SERVICE}/{Method.PREPARE}", request.SerializeToString(), timeout=timeout)
    return dra.NodePrepareResourcesResponse.FromString(answer).claims[claim.uid]


async def unprepare(service: Connection, claim: dra.Claim) -> dra.NodeUnprepareResourceResponse:
    request = dra.NodeUnprepareResourcesRequest(claims=[claim])
    answer = await service.call(f"{SERVICE}/{Method.UNPREPARE}", request.SerializeToString(), timeout=SECONDS)
    return dra.NodeUnprepareResourcesResponse.FromString(answer).claims[claim.uid]


async def ask_registrar(path: Path, method: Method, request: bytes = b"") -> bytes:
    async with dialled(path) as registrar:
        return await registrar.call(f"/pluginregistration.Registration/{method}", request, timeout=SECONDS)


async def at_stage(driver: HookedDriver, method: Method, stage: str) -> Call:
    """The last call of the method, once it is there."""
    calls = await until(partial(driver.calls, method), lambda calls: bool(calls) and calls[-1].stage == stage)
    return calls[-1]


def cdi_files(root: Path) -> list[str]:
    return [path.name for path in (root / "cdi").iterdir()]


@asynccontextmanager
async def under_way(service: Connection, claim: dra.Claim) -> AsyncIterator[list[Any]]:
    """A call to prepare the claim; its end is in the list after the block."""
    ends: list[Any] = []

    async def ask() -> None:
        try:
            ends.append(await prepare(service, claim))
        except PluginError as e:
            ends.append(e)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        yield ends


async def test_it_prepares_and_unprepares_as_the_driver_does(
    driver: HookedDriver, service: Connection, claim: dra.Claim, root: Path
) -> None:
    answer = await prepare(service, claim)
    [device] = answer.devices
    assert (device.pool_name, device.device_name, list(device.request_names)) == ("n1", "device-00", ["gpu"])
    assert list(device.cdi_device_ids) == [f"{NAME}/test=claim-{claim.uid}-gpu"]
    assert cdi_files(root) == [f"{NAME}-{claim.uid}-gpu.json"]
    assert await driver.prepared() == [PreparedClaim(claim.name, claim.uid)]
    assert (await unprepare(service, claim)).error == ""
    assert (cdi_files(root), await driver.prepared()) == ([], [])


async def test_it_publishes_its_devices(driver: HookedDriver, cluster: RemoteCluster) -> None:
    async def names() -> list[str]:
        slices = (await cluster.list(RESOURCE_SLICES)).items
        return [device["name"] for each in slices for device in each["spec"].get("devices") or ()]

    assert await until(names) == [f"device-{number:02}" for number in range(4)]


async def test_calls_are_seen_with_what_was_asked_and_answered(
    driver: HookedDriver, service: Connection, claim: dra.Claim
) -> None:
    await prepare(service, claim)
    [call] = await driver.calls(Method.PREPARE)
    assert (call.method, call.stage, call.code, call.error) == (f"{SERVICE}/{Method.PREPARE}", "done", "OK", "")
    assert call.request == {"claims": [{"namespace": "default", "name": claim.name, "uid": claim.uid}]}
    assert call.response and call.response["claims"][claim.uid]["devices"][0]["pool_name"] == "n1"
    await driver.forget_calls()
    assert await driver.calls() == []


async def test_what_the_driver_blocks_goes_on_even_if_its_caller_has_gone(
    driver: HookedDriver, service: Connection, claim: dra.Claim
) -> None:
    await driver.block(Method.PREPARE)
    await driver.block(Method.PREPARE)  # once more is the same
    with pytest.raises(PluginUnavailable):
        await prepare(service, claim, timeout=5)
    assert (await at_stage(driver, Method.PREPARE, "running")).code == ""
    with pytest.raises(InvalidInput, match="the driver does not say within 2s, a call may be blocked"):
        await driver.prepared()
    await driver.unblock(Method.PREPARE)
    await at_stage(driver, Method.PREPARE, "done")
    assert await driver.prepared() == [PreparedClaim(claim.name, claim.uid)]


async def test_a_blocked_driver_can_be_stopped(driver: HookedDriver, service: Connection, claim: dra.Claim) -> None:
    await driver.block(Method.PREPARE)
    async with under_way(service, claim) as ends:
        await at_stage(driver, Method.PREPARE, "running")
        await driver.stop()
    assert isinstance(ends[0], PluginUnavailable)


@pytest.mark.parametrize("method", [Method.PREPARE, Method.UNPREPARE])
async def test_the_driver_fails_as_long_as_it_is_told_to(
    driver: HookedDriver, service: Connection, claim: dra.Claim, method: Method
) -> None:
    ask: Any = prepare if method is Method.PREPARE else unprepare
    await driver.fail(method)
    with pytest.raises(PluginRefused, match="simulated"):
        await ask(service, claim)
    await driver.unfail(method)
    assert (await ask(service, claim)).error == ""


async def test_a_call_held_before_the_driver_has_prepared_nothing(
    driver: HookedDriver, service: Connection, claim: dra.Claim
) -> None:
    await driver.hold(Method.PREPARE, BEFORE)
    async with under_way(service, claim) as ends:
        await at_stage(driver, Method.PREPARE, BEFORE)
        assert (await driver.prepared(), ends) == ([], [])
        await driver.release(Method.PREPARE)
    assert len(ends[0].devices) == 1


async def test_a_call_held_after_the_driver_has_prepared_the_claim(
    driver: HookedDriver, service: Connection, claim: dra.Claim
) -> None:
    await driver.hold(Method.PREPARE, AFTER)
    with pytest.raises(PluginUnavailable):
        await prepare(service, claim, timeout=5)
    call = await at_stage(driver, Method.PREPARE, "done")  # it ends with its caller
    assert call.code in ("Canceled", "DeadlineExceeded")
    assert await driver.prepared() == [PreparedClaim(claim.name, claim.uid)]


async def test_what_is_refused_never_reaches_the_driver(
    driver: HookedDriver, service: Connection, claim: dra.Claim
) -> None:
    await driver.refuse(Method.PREPARE, "INTERNAL", "out of order")
    with pytest.raises(PluginRefused, match="out of order"):
        await prepare(service, claim)
    assert (await at_stage(driver, Method.PREPARE, "done")).code == "Internal"
    await driver.accept(Method.PREPARE)
    assert len((await prepare(service, claim)).devices) == 1


async def test_health_is_sent_when_it_changes_and_streams_end_when_they_are_refused(
    driver: HookedDriver, service: Connection
) -> None:
    reports = service.stream(f"/v1alpha1.DRAResourceHealth/{Method.WATCH_HEALTH}", b"")
    async with aclosing(reports):
        assert not health.NodeWatchResourcesResponse.FromString(await anext(reports)).devices
        await driver.set_health("n1", "device-01", "Unhealthy", "too hot")
        while not (devices := health.NodeWatchResourcesResponse.FromString(await anext(reports)).devices):
            continue
        assert (devices[0].device.device_name, devices[0].health, devices[0].message) == ("device-01", 2, "too hot")
        await driver.refuse(Method.WATCH_HEALTH, "RESOURCE_EXHAUSTED", "no streams")
        with pytest.raises(PluginRefused, match="no streams"):
            await anext(reports)


async def test_health_that_nobody_watches_is_refused_in_the_end(driver: HookedDriver) -> None:
    for number in range(10):
        await driver.set_health("n1", f"device-{number}", "Healthy")
    with pytest.raises(InvalidInput, match="nobody watches the health of the devices, and 10 changes wait"):
        await driver.set_health("n1", "device-10", "Healthy")


async def test_the_registrar_fails_and_says_what_it_was_told(driver: HookedDriver, root: Path) -> None:
    path = root / "plugins_registry" / f"{NAME}-reg.sock"
    await driver.fail(Method.GET_INFO)
    with pytest.raises(PluginRefused, match="simulated"):
        await ask_registrar(path, Method.GET_INFO)
    await driver.unfail(Method.GET_INFO)
    info = registration.PluginInfo.FromString(await ask_registrar(path, Method.GET_INFO))
    assert (info.name, info.endpoint) == (NAME, str(root / "plugins" / NAME / "dra.sock"))
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"]
    assert not await driver.is_registered()
    told = registration.RegistrationStatus(plugin_registered=True).SerializeToString()
    await ask_registrar(path, Method.NOTIFY, told)
    assert await driver.is_registered()


async def test_parts_stop_and_start_alone(driver: HookedDriver, root: Path) -> None:
    registrar, service = root / "plugins_registry" / f"{NAME}-reg.sock", root / "plugins" / NAME / "dra.sock"

    async def sockets() -> tuple[bool, bool]:
        return await anyio.Path(registrar).exists(), await anyio.Path(service).exists()

    await driver.stop(Part.REGISTRAR)
    assert await sockets() == (False, True)
    await driver.start(Part.REGISTRAR)
    await driver.stop(Part.SERVICE)
    assert await sockets() == (True, False)
    await driver.stop()
    await driver.start()
    assert await sockets() == (True, True)
    with pytest.raises(InvalidInput, match="the service runs already"):
        await driver.start(Part.SERVICE)


async def test_two_instances_have_sockets_of_their_own(start: Start, claim: dra.Claim, root: Path) -> None:
    async with start(uid="a") as old, start(uid="b") as new:
        for uid in "ab":
            registrar = root / "plugins_registry" / f"{NAME}-{uid}-reg.sock"
            info = registration.PluginInfo.FromString(await ask_registrar(registrar, Method.GET_INFO))
            assert (info.name, info.endpoint) == (NAME, str(root / "plugins" / NAME / f"dra-{uid}.sock"))
        async with dialled(root / "plugins" / NAME / "dra-b.sock") as service:
            await prepare(service, claim)
        assert (await old.prepared(), len(await new.prepared())) == ([], 1)


async def test_a_driver_begins_with_its_faults_if_it_begins_stopped(start: Start, root: Path) -> None:
    path = root / "plugins_registry" / f"{NAME}-reg.sock"
    async with start(stopped=True) as driver:
        assert not await anyio.Path(path).exists()
        with pytest.raises(InvalidInput, match="fail: the registrar does not run"):
            await driver.fail(Method.GET_INFO)
        await driver.refuse(Method.GET_INFO, "INTERNAL")
        await driver.start()
        with pytest.raises(PluginRefused, match="refused by a test"):
            await ask_registrar(path, Method.GET_INFO)


async def test_a_killed_driver_does_not_answer_and_its_successor_does(start: Start, root: Path) -> None:
    async with start() as driver:
        driver.process.send_signal(signal.SIGKILL)
        await driver.process.wait()
        with pytest.raises(Unavailable, match=r"does not answer on .*; has it ended\?"):
            await driver.calls()
    async with start() as again:
        assert await again.calls() == []


async def test_what_makes_no_sense_is_refused(driver: HookedDriver) -> None:
    with pytest.raises(InvalidInput, match="no hook to block GetInfo: hold or refuse it"):
        await driver.block(Method.GET_INFO)
    with pytest.raises(InvalidInput, match='stage "later", expected before or after'):
        await driver.hold(Method.PREPARE, "later")
    with pytest.raises(InvalidInput, match='code "OK", expected one as in UNAVAILABLE'):
        await driver.refuse(Method.PREPARE, "OK")
