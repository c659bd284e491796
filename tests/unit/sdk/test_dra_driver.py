"""A driver at work: its sockets, its slices, its claims."""

import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import grpc
import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.errors import InUse, InvalidInput, NotFound
from devlet.kit.clock import Clock, SystemClock
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.identifiers import DeviceName, PoolName, RequestRef
from devlet.objects.types.claim import DeviceResult
from devlet.sdk import metadata
from devlet.sdk.dra_driver import Devices, DraDriver, DraOptions
from devlet.sdk.metadata_files import FOLDER, MetadataFiles
from devlet.sdk.registrar import Registrar
from devlet.sdk.server import Limits
from devlet.sdk.values import Claim, ClaimRef, Device, DeviceHealth, Pool, Prepared
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import until
from devlet.wire.dra_v1 import api_pb2 as pb
from devlet.wire.pluginregistration import api_pb2 as pb_registration
from tests.support.workloads import claim, node
from tests.unit.sdk.conftest import call, stream

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


def options(root: Path, instance: str = "", **more: Any) -> DraOptions:
    return DraOptions("n1", kubelet=root, cdi_directory=root / "cdi", instance=instance, **more)


@asynccontextmanager
async def at_work(
    driver: DraDriver, root: Path, store: Store, instance: str = "", clock: Clock = SystemClock(), **more: Any
) -> AsyncIterator[Registrar]:
    async with anyio.create_task_group() as tasks:
        yield await tasks.start(driver.run, options(root, instance, **more), store, clock)
        tasks.cancel_scope.cancel()


async def info(root: Path, driver: DraDriver, instance: str = "") -> pb_registration.PluginInfo:
    path = options(root, instance).registry_socket(driver.name)
    return pb_registration.PluginInfo.FromString(await call(path, "/pluginregistration.Registration/GetInfo"))


def _sockets(root: Path) -> list[Path]:
    return list(root.rglob("*.sock"))


async def slices(store: Store) -> list[Document]:
    return list((await store.list(kinds.RESOURCE_SLICES)).items)


async def allocated(store: Store, device: str, name: str = "c", configs: Sequence[Document] = ()) -> ClaimRef:
    made = await store.create(kinds.RESOURCE_CLAIMS, claim(name), "default")
    result = {"request": "gpu", "driver": Leds.name, "pool": "n1", "device": device}
    devices = {"results": [result], "config": [{"source": "FromClaim", **each} for each in configs]}
    patch = MergePatch({"status": {"allocation": {"devices": devices}}})
    await store.patch(kinds.RESOURCE_CLAIMS, name, patch, "default", subresource="status")
    return ClaimRef("default", name, made["metadata"]["uid"])


async def prepared(root: Path, ref: ClaimRef) -> str:
    """The error, if there is one."""
    path = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
    request = pb.NodePrepareResourcesRequest(claims=[pb.Claim(namespace=ref.namespace, name=ref.name, uid=ref.uid)])
    blob = await call(options(root).service_socket(Leds.name), path, request.SerializeToString())
    return pb.NodePrepareResourcesResponse.FromString(blob).claims[ref.uid].error


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


@pytest.mark.parametrize("exclusive", [True, False])
async def test_a_device_is_for_one_claim_unless_the_author_says_otherwise(
    root: Path, store: Store, exclusive: bool
) -> None:
    driver = Leds()
    driver.exclusive = exclusive
    first, second = await allocated(store, "red", "first"), await allocated(store, "red", "second")
    async with at_work(driver, root, store):
        assert await prepared(root, first) == ""
        error = await prepared(root, second)
    assert ("n1/red is prepared for claim default/first" in error) is exclusive


async def test_metadata_of_a_prepared_device_can_be_updated(root: Path, store: Store) -> None:
    driver, ref = Leds(), await allocated(store, "red")
    red = DeviceResult(request=RequestRef("gpu"), pool=PoolName("n1"), device=DeviceName("red"))
    file = MetadataFiles(Leds.name, options(root).data(Leds.name), root / "cdi").path(ref.uid, "gpu")
    async with at_work(driver, root, store, metadata=metadata.VERSIONS):
        with pytest.raises(NotFound, match="claim default/c: request gpu is not prepared"):
            await driver.update_metadata(ref, [Prepared(red)])
        assert await prepared(root, ref) == ""
        mounted = file.stat().st_ino
        await driver.update_metadata(ref, [Prepared(red, metadata={"brightness": 7})])
        assert file.stat().st_ino == mounted, "containers have this very file"
    found = metadata.read(file)
    assert found.metadata.generation == 2
    assert found.requests[0].devices[0].attributes["brightness"].int_ == 7


async def test_no_metadata_is_updated_while_device_metadata_is_disabled(root: Path, store: Store) -> None:
    driver, ref = Leds(), await allocated(store, "red")
    async with at_work(driver, root, store):
        await driver.update_metadata(ref, [Prepared(DeviceResult(request=RequestRef("gpu")))])
    assert not (options(root).data(Leds.name) / FOLDER).exists()


@pytest.mark.parametrize("kind", [None, dict])
async def test_parameters_are_refused_unless_the_author_says_of_which_type_they_are(
    root: Path, store: Store, kind: type | None
) -> None:
    driver = Leds()
    driver.parameters = kind
    ref = await allocated(store, "red", configs=[{"opaque": {"driver": Leds.name, "parameters": {"dim": True}}}])
    async with at_work(driver, root, store):
        error = await prepared(root, ref)
    assert ("led.example.com takes none" in error) is (kind is None)


@pytest.mark.spec("DN-5.3b")
async def test_health_is_advertised_if_the_author_tells_it(root: Path, store: Store) -> None:
    async with at_work(Watched(), root, store):
        assert list((await info(root, Watched())).supported_versions)[2:] == [
            "v1alpha1.DRAResourceHealth",
            "v1.DRAResourceHealth",
        ]


@pytest.mark.spec("DN-5.3d")
async def test_it_is_registered_until_the_calls_under_way_have_ended(root: Path, store: Store) -> None:
    """A node hangs up as soon as the registration socket is gone."""
    begun, go_on = anyio.Event(), anyio.Event()
    was_registered: list[bool] = []

    class Slow(Leds):
        async def prepare(self, claim: Claim) -> Sequence[Prepared]:
            begun.set()
            await go_on.wait()
            was_registered.append(options(root).registry_socket(self.name).exists())
            return []

    ref, answers = await allocated(store, "red"), list[bytes]()
    request = pb.NodePrepareResourcesRequest(claims=[pb.Claim(namespace="default", name="c", uid=ref.uid)])

    async def ask() -> None:
        method = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
        answers.append(await call(options(root).service_socket(Leds.name), method, request.SerializeToString()))

    async def go_on_later() -> None:
        await anyio.sleep(0.1)  # in which the registration socket could have gone
        go_on.set()

    async with anyio.create_task_group() as tasks:
        async with at_work(Slow(), root, store):
            tasks.start_soon(ask)
            await begun.wait()
            tasks.start_soon(go_on_later)
    assert was_registered == [True] and answers and not _sockets(root)


@pytest.mark.spec("DN-5.3e")
async def test_what_cannot_be_registered_leaves_nothing_behind(root: Path, store: Store) -> None:
    (root / "plugins_registry").touch()
    with pytest.RaisesGroup(InvalidInput, flatten_subgroups=True, allow_unwrapped=True):
        await Leds().run(options(root), store)
    assert not _sockets(root)


@pytest.mark.spec("DN-8.6c")
async def test_a_node_that_follows_the_health_does_not_hold_up_the_end(root: Path, store: Store) -> None:
    async with AsyncExitStack() as stack:
        async with at_work(Watched(), root, store, limits=Limits(grace=600)):
            socket = options(root).service_socket(Leds.name)
            lists = await stack.enter_async_context(stream(socket, "/v1.DRAResourceHealth/NodeWatchResources"))
            assert await lists.read()
        assert await lists.read() is grpc.aio.EOF


@pytest.mark.spec("DN-5.4c")
async def test_slices_that_a_node_deleted_when_it_started_are_back_when_it_has_accepted_the_driver(
    root: Path, store: Store
) -> None:
    """A kubelet does so, and a driver that waits as it does after other deletions leaves its node without devices for
    half a minute."""
    registered = pb_registration.RegistrationStatus(plugin_registered=True).SerializeToString()
    path = options(root).registry_socket(Leds.name)
    async with at_work(Leds(), root, store, clock=FakeClock()):  # in which the half minute never passes
        (before,) = await until(lambda: slices(store))
        await store.delete(kinds.RESOURCE_SLICES, before["metadata"]["name"])

        async def accepted() -> list[Document]:
            await call(path, "/pluginregistration.Registration/NotifyRegistrationStatus", registered)
            return await slices(store)

        (after,) = await until(accepted)
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
    ("name", "text"),
    [
        ("", 'Leds has no name: set name = "gpu.example.com"'),
        (None, 'Leds has no name: set name = "gpu.example.com"'),
        ("a/b", "cannot be"),
        ("LED.com", "lower case"),
    ],
)
async def test_a_name_that_cannot_be_is_refused(root: Path, store: Store, name: Any, text: str) -> None:
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


async def test_a_driver_whose_error_handler_fails_keeps_running(root: Path, store: Store) -> None:
    class Careless(Leds):
        async def devices(self) -> AsyncIterator[Devices]:
            yield [Device("Not a name")]  # told by the publisher
            yield [Device("red")]
            raise OSError("bus busy")

        def error(self, error: Exception, doing: str) -> None:
            raise KeyError(doing)

    async with at_work(Careless(), root, store):
        (published,) = await until(lambda: slices(store))
        assert (await info(root, Careless())).name == "led.example.com"
    assert [each["name"] for each in published["spec"]["devices"]] == ["red"]


@pytest.mark.parametrize(("says", "told"), [(False, True), (True, False)])
async def test_a_driver_without_a_list_for_long_is_warned_that_nothing_is_published(
    root: Path, store: Store, says: bool, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Slow(Leds):
        async def devices(self) -> AsyncIterator[Devices]:
            if says:
                yield []
            await anyio.sleep_forever()

    clock = FakeClock()
    async with at_work(Slow(), root, store, clock=clock):
        await anyio.wait_all_tasks_blocked()
        await clock.advance(10)
    text = "devices() has not yielded a list yet: nothing is published before the first one"
    assert (text in caplog.messages) is told


async def test_health_of_unpublished_devices_causes_one_warning(
    root: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    go_on, heard = anyio.Event(), anyio.Event()

    class Confused(Leds):
        async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
            await go_on.wait()
            yield [DeviceHealth("n1", "red"), DeviceHealth("pool", "red"), DeviceHealth("n1", "blue")]
            yield [DeviceHealth("pool", "red", "Unhealthy")]
            heard.set()

    async with at_work(Confused(), root, store):
        await until(lambda: slices(store))
        go_on.set()
        await heard.wait()
    found = [each.__dict__["facts"]["device"] for each in caplog.records if "not published" in each.getMessage()]
    assert found == ["pool/red", "n1/blue"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Device("red"), r"devices\(\) gave Device.*, expected a list of Device, or pools by name"),
        (None, r"devices\(\) gave None, expected a list of Device, or pools by name"),
        ("red", r"devices\(\) gave 'red', expected a list of Device"),
        (["red"], "pool n1: 'red' is not a Device"),
        ({"p": [Device("a")]}, "pool p: .* is not a Pool"),
        ({1: Pool()}, "1 is not the name of a pool"),
    ],
)
async def test_a_value_other_than_a_list_is_reported(root: Path, store: Store, given: Any, text: str) -> None:
    told: list[str] = []
    heard = anyio.Event()

    class Mistaken(Leds):
        async def devices(self) -> AsyncIterator[Devices]:
            yield given

        def error(self, error: Exception, doing: str) -> None:
            told.append(str(error))
            heard.set()

    async with at_work(Mistaken(), root, store):
        await heard.wait()
    assert re.search(text, told[0])


OLD = "0b7c2c0e-5a51-4b8e-9a4e-0e6f6d1f3c11"


@pytest.mark.spec("DN-11.24c")
async def test_sockets_of_instances_that_were_killed_are_removed(root: Path, store: Store) -> None:
    old = options(root, OLD)
    strangers = root / "plugins_registry" / f"other.example.com-{OLD}-reg.sock"
    left = [old.registry_socket(Leds.name), old.service_socket(Leds.name)]
    for path in (*left, strangers):
        path.parent.mkdir(parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    async with at_work(Leds(), root, store, "new"):

        async def found() -> set[Path]:
            return set(_sockets(root))

        new = options(root, "new")
        await until(
            found,
            lambda paths: paths == {strangers, new.registry_socket(Leds.name), new.service_socket(Leds.name)},
        )


@pytest.mark.spec("DN-6.9")
async def test_a_single_pool_says_itself_on_which_nodes_it_is(root: Path, store: Store) -> None:
    class Fabric(Leds):
        single_pool = "fabric"

        async def devices(self) -> AsyncIterator[Devices]:
            yield {"fabric": Pool([Device("switch")], all_nodes=True)}

    async with at_work(Fabric(), root, store):
        (published,) = await until(lambda: slices(store))
    assert published["spec"]["allNodes"] and "nodeName" not in published["spec"]
    assert published["metadata"]["ownerReferences"][0]["name"] == "n1"


async def test_the_endpoint_is_absolute_wherever_the_driver_was_started(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    async with at_work(Leds(), root, store, directory=Path("data")):
        assert (await info(root, Leds())).endpoint == str(root / "data/dra.sock")


async def test_an_instance_whose_name_can_be_in_no_file_name_is_refused(root: Path, store: Store) -> None:
    with pytest.raises(InvalidInput, match=r"'a/b' cannot name an instance of led.example.com"):
        await Leds().run(options(root, "a/b"), store)
