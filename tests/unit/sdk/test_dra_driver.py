"""A driver at work: its sockets, its slices, its claims."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from tests.unit.sdk.conftest import call

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.errors import InUse, InvalidInput
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.sdk.dra_driver import Devices, DraDriver, DraOptions
from devlet.sdk.registrar import Registrar
from devlet.sdk.values import Claim, ClaimRef, Device, DeviceHealth, Pool, Prepared
from devlet.testing.waiting import until
from devlet.testing.workloads import claim, node
from devlet.wire.dra_v1 import api_pb2 as pb
from devlet.wire.pluginregistration import api_pb2 as pb_registration

pytestmark = pytest.mark.anyio


class Leds(DraDriver):
    name = "led.example.com"

    async def devices(self) -> AsyncIterator[Devices]:
        yield [Device("red", {"color": "red"}), Device("green", {"color": "green"})]

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        return [Prepared(result, env={"LED": result.device}) for result in claim.results]


class Watched(Leds):
    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        yield [DeviceHealth("n1", "red", "Unhealthy")]


class Silent(DraDriver):
    name = "silent.example.com"


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        await store.create(kinds.NODES, node("n1"))
        yield store


def options(root: Path, instance: str = "") -> DraOptions:
    return DraOptions("n1", kubelet=root, cdi_directory=root / "cdi", instance=instance)


@asynccontextmanager
async def at_work(driver: DraDriver, root: Path, store: Store, instance: str = "") -> AsyncIterator[Registrar]:
    async with anyio.create_task_group() as tasks:
        yield await tasks.start(driver.run, options(root, instance), store)
        tasks.cancel_scope.cancel()


async def info(root: Path, driver: DraDriver, instance: str = "") -> pb_registration.PluginInfo:
    path = options(root, instance).registry_socket(driver.name)
    return pb_registration.PluginInfo.FromString(await call(path, "/pluginregistration.Registration/GetInfo"))


def _sockets(root: Path) -> list[Path]:
    return list(root.rglob("*.sock"))


async def slices(store: Store) -> list[Document]:
    return list((await store.list(kinds.RESOURCE_SLICES)).items)


async def allocated(store: Store, device: str) -> ClaimRef:
    made = await store.create(kinds.RESOURCE_CLAIMS, claim("c"), "default")
    result = {"request": "gpu", "driver": Leds.name, "pool": "n1", "device": device}
    patch = MergePatch({"status": {"allocation": {"devices": {"results": [result]}}}})
    await store.patch(kinds.RESOURCE_CLAIMS, "c", patch, "default", subresource="status")
    return ClaimRef("default", "c", made["metadata"]["uid"])


@pytest.mark.spec("DN-5.3a")
async def test_it_is_found_publishes_and_prepares(root: Path, store: Store) -> None:
    async with at_work(Leds(), root, store):
        found = await info(root, Leds())
        assert (found.type, found.name) == ("DRAPlugin", "led.example.com")
        assert list(found.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
        assert found.endpoint == str(root / "plugins/led.example.com/dra.sock")
        (published,) = await until(lambda: slices(store))
        assert [each["name"] for each in published["spec"]["devices"]] == ["red", "green"]
        assert published["spec"]["pool"]["name"] == published["spec"]["nodeName"] == "n1"
        ref = await allocated(store, "red")
        request = pb.NodePrepareResourcesRequest(claims=[pb.Claim(namespace="default", name="c", uid=ref.uid)])
        blob = await call(
            Path(found.endpoint),
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
            request.SerializeToString(),
        )
        answer = pb.NodePrepareResourcesResponse.FromString(blob).claims[ref.uid]
        assert not answer.error and answer.devices[0].device_name == "red" and answer.devices[0].cdi_device_ids
    assert not _sockets(root)
    assert await slices(store), "slices stay: the node takes them away when the driver does not come back"


@pytest.mark.spec("DN-5.3b")
async def test_health_is_advertised_if_the_author_tells_it(root: Path, store: Store) -> None:
    async with at_work(Watched(), root, store):
        assert list((await info(root, Watched())).supported_versions)[2:] == [
            "v1alpha1.DRAResourceHealth",
            "v1.DRAResourceHealth",
        ]


@pytest.mark.spec("DN-5.4c")
async def test_slices_that_a_node_deleted_when_it_started_are_back_when_it_has_accepted_the_driver(
    root: Path, store: Store
) -> None:
    """A kubelet does so, and a driver that waits as it does after other deletions leaves its node without devices for
    half a minute."""
    registered = pb_registration.RegistrationStatus(plugin_registered=True).SerializeToString()
    path = options(root).registry_socket(Leds.name)
    async with at_work(Leds(), root, store):
        (before,) = await until(lambda: slices(store))
        await store.delete(kinds.RESOURCE_SLICES, before["metadata"]["name"])

        async def accepted() -> list[Document]:
            await call(path, "/pluginregistration.Registration/NotifyRegistrationStatus", registered)
            return await slices(store)

        (after,) = await until(accepted, within=10.0)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_driver_that_names_no_devices_publishes_none(root: Path, store: Store) -> None:
    async with at_work(Silent(), root, store):
        await info(root, Silent())
        assert not await slices(store)


async def test_pools_may_have_names_of_their_own(root: Path, store: Store) -> None:
    class Pools(Leds):
        async def devices(self) -> AsyncIterator[Devices]:
            yield {"left": Pool([Device("a")]), "right": Pool([Device("a")])}

    async with at_work(Pools(), root, store):

        async def names() -> set[str]:
            return {each["spec"]["pool"]["name"] for each in await slices(store)}

        await until(names, lambda found: found == {"left", "right"})


@pytest.mark.spec("DN-5.3c")
async def test_two_instances_have_sockets_of_their_own(root: Path, store: Store) -> None:
    async with at_work(Leds(), root, store, "old"), at_work(Leds(), root, store, "new"):
        endpoints = {(await info(root, Leds(), each)).endpoint.rpartition("/")[2] for each in ("old", "new")}
        assert endpoints == {"dra-old.sock", "dra-new.sock"}


async def test_a_second_one_without_a_name_of_its_own_is_refused(root: Path, store: Store) -> None:
    async with at_work(Leds(), root, store):
        with pytest.RaisesGroup(InUse, flatten_subgroups=True, allow_unwrapped=True):
            await Leds().run(options(root), store)


@pytest.mark.parametrize(
    ("name", "text"), [("", "cannot be the name"), ("a/b", "cannot be"), ("LED.com", "lower case")]
)
async def test_a_name_that_cannot_be_is_refused(root: Path, store: Store, name: str, text: str) -> None:
    driver = Leds()
    driver.name = name
    with pytest.raises(InvalidInput, match=text):
        await driver.run(options(root), store)


async def test_errors_in_the_background_come_to_the_author(root: Path, store: Store) -> None:
    told: list[tuple[str, str]] = []

    class Broken(Leds):
        async def devices(self) -> AsyncIterator[Devices]:
            if self.name:
                raise OSError("bus busy")
            yield []

        def error(self, error: Exception, doing: str) -> None:
            told.append((str(error), doing))

    async with at_work(Broken(), root, store):

        async def heard() -> bool:
            return bool(told)

        await until(heard)
    assert told[0] == ("bus busy", "devices not published")
