"""DRA drivers of the SDK with the kubelet's own plugin manager and DRA manager."""

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec
import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import InvalidInput, Unavailable
from devlet.examples import fake_gpu_dra
from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES
from devlet.sdk.board import Board
from devlet.sdk.dra_driver import DraDriver, DraOptions
from devlet.sdk.dra_services import DraService
from devlet.sdk.registrar import Registrar
from devlet.sdk.values import Claim, ClaimRef, Device, DeviceHealth, Prepared
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.cluster_contract import specimens
from tests.support.peers.drivers import hooked_test_driver
from tests.support.peers.heartbeats import beating_node
from tests.support.peers.hooked_driver import Method
from tests.support.peers.kubelet_plugins import KubeletPlugins, kubelet_plugins

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

NODE = "n1"
TEST = "test-driver.cdi.k8s.io"
NAMES = ("red", "green", "blue")


class Leds(DraDriver):
    name = "led.example.com"

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}  # by device
        self.prepared: list[str] = []  # claims, in the order of the calls
        self.unprepared: list[str] = []

    async def devices(self) -> AsyncIterator[Sequence[Device]]:
        yield [Device(name, {"color": name}) for name in NAMES]

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.prepared.append(claim.ref.name)
        for result in claim.results:
            if fault := self.faults.get(result.device):
                raise InvalidInput(fault)
        return [Prepared(result, env={"LED": result.device}) for result in claim.results]

    async def unprepare(self, claim: ClaimRef) -> None:
        self.unprepared.append(claim.name)


class SickLeds(Leds):
    """Tells the health of its devices."""

    def __init__(self) -> None:
        super().__init__()
        self.board: Board[Sequence[DeviceHealth]] = Board()

    def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        return self.board.values()


@pytest.fixture(scope="module")
async def api(peers: "Peers") -> AsyncIterator[EmbeddedApi]:
    peers.need("kubelet-plugins", "kubelet-claims")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with embedded_api(path) as running:
        yield running
    shutil.rmtree(path)


@pytest.fixture(scope="module")
async def cluster(api: EmbeddedApi) -> AsyncIterator[RemoteCluster]:
    settings = Settings(qps=0)
    async with connected(kubeconfig.connection([api.kubeconfig]), settings) as cluster, beating_node(cluster, NODE):
        yield cluster


@pytest.fixture
async def kubelet(peers: "Peers", api: EmbeddedApi, root: Path) -> AsyncIterator[Restarts[KubeletPlugins]]:
    """A kubelet that starts deletes all slices of its node. The first one has done so, and no driver has to do it
    again after a while."""
    make = partial(kubelet_plugins, peers.binaries, root, kubeconfig=api.kubeconfig, node_name=NODE)
    async with Restarts(make) as running:
        await until(partial(line("Deleted ResourceSlices"), running.running.process))
        yield running


def exactly(name: str, **more: object) -> Document:
    return {"name": name, "exactly": {"deviceClassName": "any", **more}}


def given(driver: str, device: str, request: str, **more: object) -> Document:
    return {"request": request, "driver": driver, "pool": NODE, "device": device, **more}


class Node:
    """One with a driver."""

    def __init__(self, kubelet: Restarts[KubeletPlugins], cluster: RemoteCluster, root: Path) -> None:
        self._kubelet = kubelet
        self.cluster = cluster
        self.root = root

    @property
    def kubelet(self) -> KubeletPlugins:
        return self._kubelet.running

    async def restart(self) -> None:
        """The kubelet, without a warning."""
        await self._kubelet.kill()
        await self._kubelet.start()

    def options(self, instance: str = "", services: Sequence[DraService] = tuple(DraService)) -> DraOptions:
        cdi = self.root / "cdi"
        return DraOptions(NODE, self.root, cdi_directory=cdi, instance=instance, services=tuple(services))

    @asynccontextmanager
    async def served(self, driver: DraDriver, options: DraOptions | None = None) -> AsyncIterator[Registrar]:
        """Until the kubelet has accepted it."""
        async with anyio.create_task_group() as tasks:
            registrar: Registrar = await tasks.start(driver.run, options or self.options(), self.cluster)
            await registrar.registered()
            await self.until_registered(driver.name)
            yield registrar
            tasks.cancel_scope.cancel()

    async def until_registered(self, driver: str) -> None:
        await until(partial(self.kubelet.has_driver, driver))

    async def pod(self, driver: str, *devices: str) -> Document:
        """One with a claim for each of the devices."""
        uid = specimens.unique("pod")
        claims = [await self._claim(uid, driver, device) for device in devices]
        container = {"name": "main", "resources": {"claims": [{"name": claim} for claim in claims]}}
        references = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        spec = {"containers": [container], "resourceClaims": references}
        return {"metadata": {"name": uid, "namespace": "default", "uid": uid}, "spec": spec}

    async def sharing_pod(self, requests: Sequence[Document], *results: Document) -> Document:
        """One with a container for each of the requests, which has that request of the pod's claim, and its name."""
        uid = specimens.unique("pod")
        claim = await self._allocated(uid, requests, results)
        names = [request["name"] for request in requests]
        containers = [{"name": name, "resources": {"claims": [{"name": claim, "request": name}]}} for name in names]
        spec = {"containers": containers, "resourceClaims": [{"name": claim, "resourceClaimName": claim}]}
        return {"metadata": {"name": uid, "namespace": "default", "uid": uid}, "spec": spec}

    async def _claim(self, pod: str, driver: str, device: str) -> str:
        return await self._allocated(pod, [exactly("gpu")], [given(driver, device, "gpu")])

    async def _allocated(self, pod: str, requests: Sequence[Document], results: Sequence[Document]) -> str:
        document = {"metadata": {"name": specimens.unique("c")}, "spec": {"devices": {"requests": requests}}}
        made = await self.cluster.create(RESOURCE_CLAIMS, document, "default")
        name: str = made["metadata"]["name"]
        reserved = {"resource": "pods", "name": pod, "uid": pod}
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": [reserved]}
        await self.cluster.patch(RESOURCE_CLAIMS, name, MergePatch({"status": status}), "default", subresource="status")
        return name

    async def environment(self, pod: Document, name: str = "main") -> dict[str, str]:
        """Of its container, by what the CDI devices stand for that the kubelet would name to a runtime."""
        container = (await self.kubelet.start(pod))[name]
        edits = self.cdi()
        variables = [text for id in container.cdi or () for text in edits[id]]
        return dict(text.split("=", 1) for text in variables)

    def cdi(self) -> dict[str, list[str]]:
        """Variables by the id of the device, of all CDI files."""
        folder = self.root / "cdi"
        specs = [msgspec.json.decode(path.read_bytes()) for path in folder.iterdir()] if folder.exists() else []
        return {
            f"{spec['kind']}={device['name']}": device["containerEdits"].get("env", [])
            for spec in specs
            for device in spec["devices"]
        }

    async def slices(self, driver: str) -> dict[str, str]:
        """Versions by UID."""
        found = await self.cluster.list(RESOURCE_SLICES)
        metadata = [each["metadata"] for each in found.items if each["spec"]["driver"] == driver]
        return {each["uid"]: each["resourceVersion"] for each in metadata}


@pytest.fixture
def node(kubelet: Restarts[KubeletPlugins], cluster: RemoteCluster, root: Path) -> Node:
    return Node(kubelet, cluster, root)


def claims(pod: Document) -> list[str]:
    return [each["name"] for each in pod["spec"]["resourceClaims"]]


SERVICES = pytest.mark.parametrize("services", [tuple(DraService), (DraService.V1BETA1,)], ids=["both", "v1beta1"])


@pytest.mark.spec("DN-5.1a")
@pytest.mark.spec("DN-5.3a")
@SERVICES
async def test_a_claim_is_prepared_used_and_unprepared(node: Node, services: Sequence[DraService]) -> None:
    driver = Leds()
    async with node.served(driver, node.options(services=services)):
        pod = await node.pod(driver.name, "red")
        await node.kubelet.prepare(pod)
        assert await node.environment(pod) == {"LED": "red"}
        await node.kubelet.unprepare(pod)
        assert node.cdi() == {}
    assert driver.prepared == driver.unprepared == claims(pod)


@pytest.mark.spec("DN-5.1b")
async def test_a_claim_that_fails_is_named_and_the_others_of_its_pod_are_not_lost(node: Node) -> None:
    driver = Leds()
    async with node.served(driver):
        pod = await node.pod(driver.name, *NAMES)
        _, green, _ = claims(pod)
        driver.faults["green"] = "green does not light up: check its cable"
        with pytest.raises(InvalidInput, match=f"{green}: green does not light up: check its cable"):
            await node.kubelet.prepare(pod)
        assert driver.prepared == claims(pod)  # all of them, in one call

        driver.faults.clear()
        await node.kubelet.prepare(pod)
        assert sorted((await node.kubelet.start(pod))["main"].cdi or ()) == sorted(node.cdi())
        assert len(node.cdi()) == 3
        await node.kubelet.unprepare(pod)
    assert sorted(driver.unprepared) == sorted(claims(pod))


async def test_a_pod_that_never_got_its_claims_is_cleaned_up(node: Node) -> None:
    driver = Leds()
    async with node.served(driver):
        pod = await node.pod(driver.name, "red", "green")
        driver.faults["green"] = "no"
        with pytest.raises(InvalidInput):
            await node.kubelet.prepare(pod)
        assert len(node.cdi()) == 1
        await node.kubelet.unprepare(pod)
        assert node.cdi() == {}


async def test_an_error_with_nothing_to_say_is_an_error(node: Node) -> None:
    class Silent(Leds):
        async def prepare(self, claim: Claim) -> Sequence[Prepared]:
            raise ValueError

    driver = Silent()
    async with node.served(driver):
        with pytest.raises(InvalidInput, match="ValueError"):
            await node.kubelet.prepare(await node.pod(driver.name, "red"))


async def test_two_pods_share_a_claim_that_is_prepared_once_and_unprepared_with_the_last(node: Node) -> None:
    driver = Leds()
    async with node.served(driver):
        one = await node.pod(driver.name, "red")
        [claim] = claims(one)
        other = one | {"metadata": {"name": "other", "namespace": "default", "uid": "other"}}
        users = [{"resource": "pods", "name": uid, "uid": uid} for uid in (one["metadata"]["uid"], "other")]
        patch = MergePatch({"status": {"reservedFor": users}})
        await node.cluster.patch(RESOURCE_CLAIMS, claim, patch, "default", subresource="status")
        for pod in (one, other):
            await node.kubelet.prepare(pod)
        assert await node.environment(other) == await node.environment(one) == {"LED": "red"}
        await node.kubelet.unprepare(one)
        assert driver.unprepared == []
        await node.kubelet.unprepare(other)
    assert (driver.prepared, driver.unprepared) == ([claim], [claim])


async def test_a_container_gets_the_devices_of_the_request_that_it_names(node: Node) -> None:
    driver = Leds()
    choice = {"name": "any", "firstAvailable": [{"name": "best", "deviceClassName": "any"}]}
    results = [given(driver.name, "red", "one"), given(driver.name, "green", "any/best")]
    async with node.served(driver):
        pod = await node.sharing_pod([exactly("one"), choice], *results)
        await node.kubelet.prepare(pod)
        assert await node.environment(pod, "one") == {"LED": "red"}
        assert await node.environment(pod, "any") == {"LED": "green"}
        await node.kubelet.unprepare(pod)


@pytest.mark.spec("DN-5.5b")
@SERVICES
async def test_two_shares_of_a_device_are_two_cdi_devices(node: Node, services: Sequence[DraService]) -> None:
    class Shared(Leds):
        async def prepare(self, claim: Claim) -> Sequence[Prepared]:
            return [Prepared(result, env={"SHARE": str(result.share_id)}) for result in claim.results]

    driver, shares = Shared(), ["c5cbd9a0-8a72-4a3b-9c5a-0d8a1d8b6a01", "c5cbd9a0-8a72-4a3b-9c5a-0d8a1d8b6a02"]
    requests = ["one", "two"]
    results = [given(driver.name, "red", name, shareID=share) for name, share in zip(requests, shares, strict=True)]
    async with node.served(driver, node.options(services=services)):
        pod = await node.sharing_pod([exactly(name) for name in requests], *results)
        await node.kubelet.prepare(pod)
        assert [(await node.environment(pod, name))["SHARE"] for name in requests] == shares
        await node.kubelet.unprepare(pod)
        assert node.cdi() == {}


# Restarts


@pytest.mark.spec("DN-5.1c")
async def test_a_call_that_the_kubelet_did_not_live_to_see_the_end_of_is_made_again(node: Node) -> None:
    class Slow(Leds):
        def __init__(self) -> None:
            super().__init__()
            self.goes_on = anyio.Event()

        async def prepare(self, claim: Claim) -> Sequence[Prepared]:
            self.prepared.append(claim.ref.name)
            await self.goes_on.wait()
            return [Prepared(result, env={"LED": result.device}) for result in claim.results]

    driver = Slow()
    async with node.served(driver, node.options("one")) as registrar, anyio.create_task_group() as tasks:
        pod = await node.pod(driver.name, "red")

        async def try_it() -> None:
            with pytest.raises(Unavailable):
                await node.kubelet.prepare(pod)

        async def asked() -> list[str]:
            return driver.prepared

        tasks.start_soon(try_it)
        await until(asked)
        await node.restart()
        await registrar.registered(2)
        driver.goes_on.set()
        await node.kubelet.prepare(pod)
        assert await node.environment(pod) == {"LED": "red"}
        await node.kubelet.unprepare(pod)
        assert node.cdi() == {}
    assert driver.prepared == claims(pod) * 2


@pytest.mark.spec("DN-5.4a")
async def test_a_kubelet_that_was_killed_registers_the_driver_again_and_remembers_its_claims(node: Node) -> None:
    driver = Leds()
    async with node.served(driver) as registrar:
        pod = await node.pod(driver.name, "red")
        await node.kubelet.prepare(pod)
        for restarts in (1, 2):
            await node.restart()
            await registrar.registered(1 + restarts)
            await node.until_registered(driver.name)
            await node.kubelet.prepare(pod)  # as the kubelet does for each of its pods
            assert await node.environment(pod) == {"LED": "red"}
        await node.kubelet.unprepare(pod)
        assert node.cdi() == {}
    assert driver.unprepared == claims(pod)


async def test_a_driver_that_comes_back_finishes_what_its_predecessor_began(node: Node) -> None:
    first, second = Leds(), Leds()
    async with node.served(first):
        slices = await until(partial(node.slices, first.name))
        pod = await node.pod(first.name, "red")
        await node.kubelet.prepare(pod)
    async with node.served(second):
        await node.kubelet.unprepare(pod)
        assert node.cdi() == {}
        assert await node.slices(first.name) == slices
    assert (first.unprepared, second.unprepared) == ([], claims(pod))


async def test_without_its_driver_a_pod_is_told_who_is_missing(node: Node) -> None:
    driver = Leds()
    pod = await node.pod(driver.name, "red")
    with pytest.raises(InvalidInput, match=f"DRA driver {driver.name} is not registered"):
        await node.kubelet.prepare(pod)
    async with node.served(driver):
        await node.kubelet.prepare(pod)


async def test_a_registration_socket_that_somebody_removed_is_back(node: Node) -> None:
    driver = Leds()
    async with node.served(driver) as registrar:
        node.options().registry_socket(driver.name).unlink()
        await registrar.registered(2)
        await node.until_registered(driver.name)
        await node.kubelet.prepare(await node.pod(driver.name, "red"))


# Rolling updates


@pytest.mark.spec("DN-5.3c")
async def test_the_newest_instance_is_called_and_then_the_one_that_is_left(node: Node) -> None:
    old, new = Leds(), Leds()
    async with node.served(old, node.options("old")):
        slices = await until(partial(node.slices, old.name))
        early, amid, late = [await node.pod(old.name, device) for device in NAMES]
        await node.kubelet.prepare(early)
        async with node.served(new, node.options("new")):
            await node.kubelet.prepare(amid)
            await node.kubelet.unprepare(early)
        await until(partial(prepares, node, late))
        assert await node.environment(late) == {"LED": "blue"}
        assert len(await node.slices(old.name)) == len(slices) == 1
        for pod in (amid, late):
            await node.kubelet.unprepare(pod)
        assert node.cdi() == {}
    assert (old.prepared[0], new.prepared) == (claims(early)[0], claims(amid))
    assert (new.unprepared, old.unprepared) == (claims(early), [*claims(amid), *claims(late)])


async def prepares(node: Node, pod: Document) -> bool:
    """It takes the kubelet a second to see that an instance is gone."""
    try:
        await node.kubelet.prepare(pod)
    except InvalidInput:
        return False
    return True


class LikeTheTestDriver(Leds):
    """Its name and devices."""

    name = TEST

    async def devices(self) -> AsyncIterator[Sequence[Device]]:
        yield [Device(f"device-0{number}") for number in range(4)]


@pytest.mark.spec("DN-5.3c")
async def test_a_driver_in_go_is_replaced_by_one_of_the_sdk(node: Node, peers: "Peers", api: EmbeddedApi) -> None:
    ours = LikeTheTestDriver()
    go = hooked_test_driver(peers.binaries, node.root, api.kubeconfig, node_name=NODE, uid="go")
    async with go as theirs:
        await node.until_registered(TEST)
        slices = await until(partial(node.slices, TEST))
        early = await node.pod(TEST, "device-00")
        await node.kubelet.prepare(early)
        async with node.served(ours, node.options("sdk")):
            amid = await node.pod(TEST, "device-01")
            await node.kubelet.prepare(amid)
            await node.kubelet.unprepare(early)
            assert await node.slices(TEST) == slices  # both publish the same, and leave it alone
            assert len(await theirs.calls(Method.PREPARE)) == 1
            await theirs.stop()
            await node.kubelet.unprepare(amid)
    assert (ours.prepared, ours.unprepared) == (claims(amid), [*claims(early), *claims(amid)])


@pytest.mark.spec("DN-5.3c")
async def test_a_driver_of_the_sdk_is_replaced_by_one_in_go(node: Node, peers: "Peers", api: EmbeddedApi) -> None:
    ours = LikeTheTestDriver()
    go = hooked_test_driver(peers.binaries, node.root, api.kubeconfig, node_name=NODE, uid="go")
    async with node.served(ours, node.options("sdk")):
        slices = await until(partial(node.slices, TEST))
        early = await node.pod(TEST, "device-00")
        await node.kubelet.prepare(early)
        async with go as theirs:
            await until(theirs.is_registered)
            amid = await node.pod(TEST, "device-01")
            await node.kubelet.prepare(amid)
            assert len(await theirs.calls(Method.PREPARE)) == 1
            await node.kubelet.unprepare(amid)
            assert await node.slices(TEST) == slices
        await until(partial(prepares, node, await node.pod(TEST, "device-02")))
        await node.kubelet.unprepare(early)
    assert ours.unprepared == claims(early)


# Health


@pytest.mark.spec("DN-8.6a")
async def test_what_a_driver_says_of_a_device_is_what_the_pods_status_says(node: Node) -> None:
    driver = SickLeds()
    driver.board.show([DeviceHealth(NODE, "red"), DeviceHealth(NODE, "green")])
    async with node.served(driver):
        pod = await node.pod(driver.name, "red")
        await node.kubelet.prepare(pod)

        async def told() -> tuple[str, str]:
            [status] = (await node.kubelet.health(pod))["main"] or [{"resources": [{"health": ""}]}]
            [resource] = status["resources"]
            return resource["health"], resource.get("message", "")

        assert await until(told, lambda found: found[0] == "Healthy") == ("Healthy", "")
        driver.board.show([DeviceHealth(NODE, "red", "Unhealthy", "burnt out"), DeviceHealth(NODE, "green")])
        assert await until(told, lambda found: found[0] == "Unhealthy") == ("Unhealthy", "burnt out")
        await node.restart()
        await node.until_registered(driver.name)
        await until(told, lambda found: found == ("Unhealthy", "burnt out"))


# As programs


def gpus(node: Node, api: EmbeddedApi, *flags: str) -> AbstractAsyncContextManager[RunningProcess]:
    argv = [sys.executable, "-m", fake_gpu_dra.__name__, f"--node-name={NODE}", f"--kubelet-root={node.root}"]
    argv += [f"--kubeconfig={api.kubeconfig}", f"--cdi-root={node.root / 'cdi'}", *flags]
    return process(argv, name="gpus", log=node.root / "gpus.log")


async def test_an_example_that_is_killed_again_and_again_prepares_and_unprepares(node: Node, api: EmbeddedApi) -> None:
    name = fake_gpu_dra.FakeGpus.name
    async with Restarts(partial(gpus, node, api)) as program:
        await node.until_registered(name)
        slices = await until(partial(node.slices, name))
        pod = await node.pod(name, "gpu-0", "gpu-1")
        for _ in range(3):
            await until(partial(prepares, node, pod))
            environment = await node.environment(pod)
            assert {"GPU_0", "GPU_1", "GPU_0_SHARING"} <= environment.keys()
            await program.kill()
            await program.start()
        await until(partial(unprepares, node, pod))
        assert node.cdi() == {}
        assert await node.slices(name) == slices
        assert [path async for path in anyio.Path(node.root / "plugins" / name / "claims").iterdir()] == []


async def unprepares(node: Node, pod: Document) -> bool:
    try:
        await node.kubelet.unprepare(pod)
    except InvalidInput:
        return False
    return True
