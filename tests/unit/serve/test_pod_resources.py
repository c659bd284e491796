"""A real client on the real socket."""

import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message

from devlet.errors import StateCorrupt, Unavailable
from devlet.kit.clock import Clock
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec
from devlet.plugins.devices import Device
from devlet.serve.pod_resources import ClaimDevice, DynamicResource, PodResourcesMetrics, PodResourcesServer
from devlet.testing.fake_clock import FakeClock
from devlet.wire.podresources_v1 import api_pb2 as v1
from devlet.wire.podresources_v1alpha1 import api_pb2 as v1alpha1

pytestmark = pytest.mark.anyio

GPU = ResourceName("a.com/gpu")


def pod(name: str, namespace: str = "default") -> Pod:
    init = (Container(name=ContainerName("init")), Container(name=ContainerName("side"), restart_policy="Always"))
    spec = PodSpec(init_containers=init, containers=(Container(name=ContainerName("main")),))
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}"), spec=spec)


@dataclass
class Node:
    """The sources of pods and devices, and the service between them and a client."""

    directory: Path
    pods: list[Pod] = field(default_factory=list)
    held: dict[tuple[str, str], dict[DeviceID, tuple[int, ...]]] = field(default_factory=dict)
    listed: dict[ResourceName, tuple[Device, ...]] = field(default_factory=dict)
    clock: Clock = field(default_factory=FakeClock)
    registry: Registry = field(default_factory=Registry)
    broken: Exception | None = None

    def active(self) -> list[Pod]:
        if self.broken:
            raise self.broken
        return self.pods

    def find(self, namespace: str, name: str) -> Pod | None:
        return next((p for p in self.active() if (p.metadata.namespace, p.name) == (namespace, name)), None)

    def container_devices(
        self, pod: PodUID, container: ContainerName
    ) -> dict[ResourceName, dict[DeviceID, tuple[int, ...]]]:
        found = self.held.get((pod, container))
        return {GPU: found} if found else {}

    def allocatable_devices(self) -> dict[ResourceName, tuple[Device, ...]]:
        if self.broken:
            raise self.broken
        return self.listed

    def server(
        self, dynamic: Callable[[Pod, Container], Sequence[DynamicResource]] = lambda pod, container: ()
    ) -> PodResourcesServer:
        metrics = PodResourcesMetrics(self.registry)
        return PodResourcesServer(self.directory, self, self, metrics, self.clock, dynamic=dynamic)

    def counted(self, name: str, version: str = "v1") -> str | None:
        series = f'kubelet_pod_resources_endpoint_{name}{{server_api_version="{version}"}} '
        lines = self.registry.text().splitlines()
        return next((line.removeprefix(series) for line in lines if line.startswith(series)), None)


@pytest.fixture
def node(root: Path) -> Node:
    return Node(root / "pod-resources")


class Client:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def call(self, path: str, request: Message | bytes) -> bytes:
        blob = request if isinstance(request, bytes) else request.SerializeToString()
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(path)
        return await method(blob)

    async def list(self) -> v1.ListPodResourcesResponse:
        blob = await self.call("/v1.PodResourcesLister/List", v1.ListPodResourcesRequest())
        return v1.ListPodResourcesResponse.FromString(blob)

    async def get(self, namespace: str, name: str) -> v1.PodResources:
        request = v1.GetPodResourcesRequest(pod_name=name, pod_namespace=namespace)
        blob = await self.call("/v1.PodResourcesLister/Get", request)
        return v1.GetPodResourcesResponse.FromString(blob).pod_resources

    async def allocatable(self) -> v1.AllocatableResourcesResponse:
        request = v1.AllocatableResourcesRequest()
        blob = await self.call("/v1.PodResourcesLister/GetAllocatableResources", request)
        return v1.AllocatableResourcesResponse.FromString(blob)

    async def list_v1alpha1(self) -> v1alpha1.ListPodResourcesResponse:
        blob = await self.call("/v1alpha1.PodResourcesLister/List", v1alpha1.ListPodResourcesRequest())
        return v1alpha1.ListPodResourcesResponse.FromString(blob)

    async def accepted(self, calls: int) -> int:
        accepted = 0
        for _ in range(calls):
            try:
                await self.list()
                accepted += 1
            except grpc.aio.AioRpcError as e:
                assert (e.code(), e.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        return accepted


@asynccontextmanager
async def client_of(server: PodResourcesServer, agent: str = "agent") -> AsyncIterator[Client]:
    options = [("grpc.primary_user_agent", agent)]
    async with grpc.aio.insecure_channel(f"unix:{server.path}", options=options) as channel:
        yield Client(channel)


@asynccontextmanager
async def asking(server: PodResourcesServer) -> AsyncIterator[Client]:
    async with running(server.run), client_of(server) as client:
        yield client


CLAIM = DynamicResource("claim", "default", (ClaimDevice("d.com", "pool", "gpu-0", ("d.com/gpu=0",)),))


def claims(pod: Pod, container: Container) -> tuple[DynamicResource, ...]:
    return (CLAIM,) if (pod.name, container.name) in (("both", "main"), ("claimed", "main")) else ()


@pytest.mark.spec("DP-8.72")
async def test_pods_are_listed_with_devices_with_claims_with_both_and_with_none(node: Node) -> None:
    async with asking(node.server(claims)) as client:
        assert not (await client.list()).pod_resources
        node.pods = [pod("plain"), pod("device"), pod("claimed"), pod("both")]
        node.held = {(f"uid-{name}", "main"): {DeviceID(f"gpu-{name}"): (1,)} for name in ("device", "both")}
        listed = (await client.list()).pod_resources
    assert [each.name for each in listed] == ["both", "claimed", "device", "plain"]
    shown = {}
    for each in listed:
        main = each.containers[1]
        ids = [id for device in main.devices for id in device.device_ids]
        shown[each.name] = (ids, [claim.claim_name for claim in main.dynamic_resources])
    assert shown == {
        "both": (["gpu-both"], ["claim"]),
        "claimed": ([], ["claim"]),
        "device": (["gpu-device"], []),
        "plain": ([], []),
    }


@pytest.mark.spec("DP-8.73")
async def test_pods_that_are_no_longer_active_are_neither_listed_nor_found(node: Node) -> None:
    node.pods = [pod("stays"), pod("ends")]
    async with asking(node.server()) as client:
        assert [each.name for each in (await client.list()).pod_resources] == ["ends", "stays"]
        node.pods.pop()
        assert [each.name for each in (await client.list()).pod_resources] == ["stays"]
        with pytest.raises(grpc.aio.AioRpcError):
            await client.get("default", "ends")
        assert [each.name for each in (await client.get("default", "stays")).containers] == ["side", "main"]


@pytest.mark.spec("DP-8.74")
async def test_an_absent_pod_is_not_found(node: Node) -> None:
    node.pods = [pod("train", "ns")]
    node.held = {("uid-train", "main"): {DeviceID("g0"): ()}}
    async with asking(node.server()) as client:
        found = await client.get("ns", "train")
        assert [device.device_ids for device in found.containers[1].devices] == [["g0"]]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.get("default", "train")
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    assert caught.value.details() == "pod train in namespace default not found"
    assert (node.counted("requests_get"), node.counted("errors_get")) == ("2", "1")


@pytest.mark.spec("DP-8.74")
async def test_allocatable_are_the_devices_that_are_healthy_held_or_not(node: Node) -> None:
    async with asking(node.server()) as client:
        assert not (await client.allocatable()).devices
        node.listed = {GPU: (Device(DeviceID("g1"), nodes=(0, 1)), Device(DeviceID("g0")))}
        answer = await client.allocatable()
    shown = [(d.resource_name, list(d.device_ids), [n.ID for n in d.topology.nodes]) for d in answer.devices]
    assert shown == [(GPU, ["g0"], []), (GPU, ["g1"], [0]), (GPU, ["g1"], [1])]
    assert not answer.cpu_ids and not answer.memory
    assert node.counted("requests_get_allocatable") == "2"


async def test_the_first_version_of_the_api_is_served(node: Node) -> None:
    node.pods, node.held = [pod("train")], {("uid-train", "main"): {DeviceID("g0"): (0, 1)}}
    async with asking(node.server()) as client:
        [listed] = (await client.list_v1alpha1()).pod_resources
    assert [(each.name, [list(d.device_ids) for d in each.devices]) for each in listed.containers] == [
        ("main", [["g0"]])
    ]
    assert (node.counted("requests_total", "v1alpha1"), node.counted("requests_list", "v1alpha1")) == ("1", None)


@pytest.mark.spec("DP-8.75")
async def test_calls_beyond_burst_and_rate_are_rejected_and_not_counted(node: Node) -> None:
    clock = FakeClock()
    node.clock = clock
    async with asking(node.server()) as client:
        assert await client.accepted(15) == 10
        assert node.counted("requests_total") == "10"
        await clock.advance(0.035)
        assert await client.accepted(5) == 3


@pytest.mark.spec("DP-9.28")
async def test_a_client_that_asks_too_often_does_not_starve_another(node: Node) -> None:
    server = node.server()
    async with asking(server) as greedy, client_of(server, "another") as modest:
        assert await greedy.accepted(30) == 10
        assert await modest.accepted(1) == 1


@pytest.mark.spec("DP-9.28")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unavailable("the node is starting"), grpc.StatusCode.UNAVAILABLE),
        (StateCorrupt("the node is in two minds"), grpc.StatusCode.INTERNAL),
    ],
)
async def test_errors_are_counted_and_reported(node: Node, error: Exception, code: grpc.StatusCode) -> None:
    async with asking(node.server()) as client:
        node.broken = error
        for call in (client.list, client.allocatable):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call()
            assert (caught.value.code(), caught.value.details()) == (code, str(error))
    assert (node.counted("errors_list"), node.counted("errors_get_allocatable")) == ("1", "1")


async def test_an_error_about_claims_does_not_hide_the_devices(node: Node) -> None:
    def fails(pod: Pod, container: Container) -> tuple[DynamicResource, ...]:
        raise Unavailable("no claims now")

    node.pods, node.held = [pod("train")], {("uid-train", "main"): {DeviceID("g0"): ()}}
    async with asking(node.server(fails)) as client:
        [listed] = (await client.list()).pod_resources
    assert [len(each.devices) for each in listed.containers] == [0, 1]


async def test_a_malformed_message_is_refused(node: Node) -> None:
    async with asking(node.server()) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.call("/v1.PodResourcesLister/Get", b"\xff\xff")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_the_socket_is_private_and_replaces_what_was_left_behind(node: Node) -> None:
    server = node.server()
    async with asking(server):
        assert stat.S_IMODE(node.directory.stat().st_mode) == 0o750
        assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
        assert os.listdir(node.directory) == ["kubelet.sock"]
        os.link(server.path, node.directory / "left")
    assert os.listdir(node.directory) == ["left"]
    (node.directory / "left").rename(server.path)
    (node.directory / ".new").mkdir()
    node.registry = Registry()
    async with asking(node.server()) as client:
        assert not (await client.list()).pod_resources
        assert os.listdir(node.directory) == ["kubelet.sock"]


async def test_a_file_in_the_place_of_the_socket_is_left_alone(node: Node) -> None:
    node.directory.mkdir()
    (node.directory / "kubelet.sock").write_text("precious")
    with pytest.raises(ExceptionGroup) as caught:
        async with running(node.server().run):
            pass
    assert caught.group_contains(Unavailable, match="something else is there")
    assert (node.directory / "kubelet.sock").read_text() == "precious"


def shown(registry: Registry) -> list[str]:
    return [line for line in registry.text().splitlines() if not line.startswith("#")]


def test_requests_are_counted_in_all_and_by_method() -> None:
    registry = Registry()
    metrics = PodResourcesMetrics(registry)
    for method in ("List", "Get", "Get", "GetAllocatableResources"):
        metrics.requested("v1", method)
    metrics.failed("v1", "Get")
    assert shown(registry) == [
        'kubelet_pod_resources_endpoint_errors_get{server_api_version="v1"} 1',
        'kubelet_pod_resources_endpoint_requests_get{server_api_version="v1"} 2',
        'kubelet_pod_resources_endpoint_requests_get_allocatable{server_api_version="v1"} 1',
        'kubelet_pod_resources_endpoint_requests_list{server_api_version="v1"} 1',
        'kubelet_pod_resources_endpoint_requests_total{server_api_version="v1"} 4',
    ]


def test_the_first_version_has_one_number_for_all() -> None:
    registry = Registry()
    metrics = PodResourcesMetrics(registry)
    metrics.requested("v1alpha1", "List")
    metrics.failed("v1alpha1", "List")
    assert shown(registry) == ['kubelet_pod_resources_endpoint_requests_total{server_api_version="v1alpha1"} 1']
