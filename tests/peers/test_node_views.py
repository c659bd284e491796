"""The real kubectl reads the node's views as any other resource."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

import anyio
import pytest

from devlet.cluster.store.store import open_store
from devlet.daemon.config import Config
from devlet.daemon.kube_api import serving
from devlet.kit.clock import SystemClock
from devlet.node.claim_views import Known, driver_documents, prepared_claim_documents
from devlet.node.claims.records import ClaimKey, PodWait
from devlet.node.devices.records import DeviceRecord, DeviceState, PluginRecord, PluginState
from devlet.node.views import device_documents, plugin_documents
from devlet.objects.documents import Document
from devlet.objects.identifiers import ClaimName, ContainerName, DeviceID, DriverName, PodUID, ResourceName
from devlet.objects.kinds import BUILT_IN
from devlet.objects.views.device import DeviceStatus
from devlet.objects.views.prepared_claim import ClaimDevice
from devlet.plugins.dra import DriverRecord, Service
from tests.support.peers.kube_programs import kube_controller_manager

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

GPU = ResourceName("a.com/gpu")
SINCE = datetime(2026, 1, 2, tzinfo=UTC)
Kubectl = Callable[..., Awaitable[tuple[int, str]]]


class Views:
    def devices(self) -> list[Document]:
        pod, container = PodUID("u1"), ContainerName("main")
        held = DeviceRecord(GPU, DeviceID("g0"), "Healthy", (0,), DeviceState.HELD, pod, container, SINCE)
        odd = DeviceRecord(GPU, DeviceID("/dev/g%1"), "Healthy", (), DeviceState.FREE)
        return device_documents([held, odd], [])

    def plugins(self) -> list[Document]:
        return plugin_documents([PluginRecord(GPU, Path("/p/g.sock"), "v1beta1", PluginState.CONNECTED, SINCE)])

    async def holders(self) -> list[Document]:
        return []

    async def drivers(self) -> list[Document]:
        driver, endpoint = DriverName("gpu.example.com"), Path("/p/gpu/dra.sock")
        used, other = (
            DriverRecord(driver, endpoint, Service.V1, ("v1.DRAPlugin",), None, SINCE, True, SINCE, preferred)
            for preferred in (True, False)
        )
        return driver_documents([used, other], Known(slices=[], wipes={DriverName("nic.example.com"): SINCE}))

    async def release_claim(self, namespace: str, name: str, *, force: bool) -> None:
        raise AssertionError("nothing is released here")

    def prepared_claims(self) -> list[Document]:
        key = ClaimKey("default", ClaimName("train-gpu"))
        return prepared_claim_documents([], [PodWait(PodUID("u1"), (key,), SINCE, "not yet")], [])


@pytest.fixture
async def kubectl(peers: "Peers", root: Path) -> AsyncIterator[Kubectl]:
    peers.need("kubectl")
    config, clock = Config(root=root, node_name="n1"), SystemClock()
    command = [str(peers.binaries / "kubectl"), "--kubeconfig", str(root / "kubeconfig")]

    async def run(*arguments: str) -> tuple[int, str]:
        done = await anyio.run_process([*command, *arguments], env={"HOME": str(root)}, check=False)
        return done.returncode, (done.stdout + done.stderr).decode()

    async with open_store(root / "cluster.db", clock=clock, kinds=BUILT_IN) as store:
        async with serving(store, config, clock, views=Views()):
            yield run


async def test_kubectl_lists_them_with_their_columns(kubectl: Kubectl) -> None:
    code, text = await kubectl("api-resources", "--api-group=devlet.dev", "-o", "name")
    kinds = ["devices", "drivers", "holders", "plugins", "preparedclaims"]
    assert (code, sorted(text.split())) == (0, [f"{kind}.devlet.dev" for kind in kinds])
    _, text = await kubectl("get", "devices")
    assert text.splitlines()[0].split() == ["RESOURCE", "ID", "HEALTH", "NUMA", "STATE", "HOLDER", "SINCE"]
    _, text = await kubectl("get", "plugins", "-o", "wide")
    assert text.splitlines()[0].split()[-3:] == ["PID", "OPTIONS", "MESSAGE"]
    assert await kubectl("get", "holders", "-A") == (0, "No resources found\n")


async def test_kubectl_finds_every_device_by_the_name_it_is_shown(kubectl: Kubectl) -> None:
    _, text = await kubectl("get", "devices", "-o", "name")
    for name in text.split():
        assert await kubectl("get", name, "-o", "name") == (0, f"{name}\n")
    assert await kubectl("get", "device", "g0", "-o", "jsonpath={.status.holder.podUID}") == (0, "u1")


def described(part: type, field: str) -> str:
    """Return the description of a field of a view."""
    description: str = get_type_hints(part, include_extras=True)[field].__metadata__[0]
    return description


async def test_kubectl_gets_and_describes_drivers_and_prepared_claims(kubectl: Kubectl) -> None:
    _, text = await kubectl("get", "drivers")
    assert [line.split()[:2] for line in text.splitlines()] == [
        ["NAME", "STATE"],
        ["gpu.example.com", "Connected"],
        ["gpu.example.com~2", "Standby"],
        ["nic.example.com", "Missing"],
    ]
    for name in ("gpu.example.com", "gpu.example.com~2"):
        code, text = await kubectl("describe", "driver", name)
        assert (code, "/p/gpu/dra.sock" in text) == (0, True), text
    _, text = await kubectl("get", "pclaims", "train-gpu", "--no-headers")
    assert text.split()[:2] == ["train-gpu", "Waiting"]
    code, text = await kubectl("describe", "preparedclaim", "train-gpu")
    assert (code, "not yet" in text) == (0, True), text
    code, text = await kubectl("explain", "preparedclaims.status.drivers.devices")
    assert (code, described(ClaimDevice, "cdi_devices") in text) == (0, True), text


async def test_the_controllers_of_kubernetes_leave_them_alone(peers: "Peers", kubectl: Kubectl, root: Path) -> None:
    """A namespace is emptied, and garbage collected, without a word about resources that cannot be deleted."""
    peers.need("kube-controller-manager")
    controllers = ("garbage-collector-controller", "namespace-controller")
    async with kube_controller_manager(peers.binaries, root, root / "kubeconfig", controllers=controllers):
        assert (await kubectl("create", "namespace", "short"))[0] == 0
        assert (await kubectl("create", "configmap", "c", "-n", "short"))[0] == 0
        assert (await kubectl("delete", "namespace", "short", "--timeout=60s"))[0] == 0
    log = (root / "kube-controller-manager.log").read_text()
    assert [line for line in log.splitlines() if "devlet.dev" in line and line[:1] in "WEF"] == []


async def test_kubectl_explains_them_and_can_change_nothing(kubectl: Kubectl) -> None:
    code, text = await kubectl("explain", "devices.status.holder")
    assert (code, described(DeviceStatus, "holder") in text) == (0, True)
    code, text = await kubectl("delete", "device", "g0")
    assert (code, "MethodNotAllowed" in text) == (1, True)
