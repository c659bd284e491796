"""Unmodified drivers start against bare directories and a real API server."""

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream

from devlet.testing.waiting import deadline
from tests.support.peers.control_plane import ControlPlane
from tests.support.peers.drivers import (
    dra_example_driver,
    dra_test_driver,
    generic_device_plugin,
    sample_device_plugin,
)

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


async def slices(cluster: ControlPlane, driver: str) -> list[dict[str, Any]]:
    """The driver's slices once there are some."""
    selector = f"--field-selector=spec.driver={driver}"
    with deadline():
        while True:
            answer = await cluster.kubectl("get", "resourceslices", selector, "-o", "json")
            assert answer.returncode == 0, answer.stderr
            if items := json.loads(answer.stdout)["items"]:
                return [dict(item) for item in items]


async def test_the_example_driver_publishes_its_devices(peers: "Peers", cluster: ControlPlane, root: Path) -> None:
    peers.need("dra-example-kubeletplugin")
    await cluster.kubectl("apply", "-f", "-", stdin=json.dumps(NODE))
    async with dra_example_driver(peers.binaries, root, cluster.kubeconfig, node_name="n1", num_devices=3):
        [published] = await slices(cluster, "gpu.example.com")
    assert published["spec"]["nodeName"] == "n1"
    assert [device["name"] for device in published["spec"]["devices"]] == ["gpu-0", "gpu-1", "gpu-2"]


async def test_the_test_driver_publishes_its_devices(peers: "Peers", cluster: ControlPlane, root: Path) -> None:
    peers.need("test-driver")
    await cluster.kubectl("apply", "-f", "-", stdin=json.dumps(NODE))
    async with dra_test_driver(peers.binaries, root, cluster.kubeconfig, node_name="n1", num_devices=2):
        [published] = await slices(cluster, "test-driver.cdi.k8s.io")
    assert [device["name"] for device in published["spec"]["devices"]] == ["device-00", "device-01"]


@asynccontextmanager
async def registrations(root: Path) -> AsyncIterator[MemoryObjectReceiveStream[bytes]]:
    """The kubelet's end, as far as a plugin needs it to start: accept its registration and show the message."""
    grpc, aio = import_module("grpc"), import_module("grpc.aio")
    seen, received = anyio.create_memory_object_stream[bytes](10)

    async def register(request: bytes, _: Any) -> bytes:
        seen.send_nowait(request)
        return b""

    handler = grpc.method_handlers_generic_handler(
        "v1beta1.Registration", {"Register": grpc.unary_unary_rpc_method_handler(register)}
    )
    server = aio.server()
    server.add_generic_rpc_handlers((handler,))
    (root / "device-plugins").mkdir()
    server.add_insecure_port(f"unix:{root}/device-plugins/kubelet.sock")
    await server.start()
    with seen, received:
        yield received
    await server.stop(grace=None)


NULL = {"name": "null", "groups": [{"count": 3, "paths": [{"path": "/dev/null"}]}]}


@contextmanager
def silent_kubelet(root: Path) -> Iterator[None]:
    """A socket that never answers: enough for a plugin to wait, and so to go on listening itself."""
    (root / "device-plugins").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "device-plugins" / "kubelet.sock"))
        listener.listen()
        yield


def sockets(root: Path) -> list[Path]:
    found = [path for path in (root / "device-plugins").iterdir() if path.is_socket()]
    return [path for path in found if path.name != "kubelet.sock"]


async def test_the_generic_device_plugin_listens_in_the_directory_it_is_given(peers: "Peers", root: Path) -> None:
    peers.need("generic-device-plugin")
    with silent_kubelet(root):
        async with generic_device_plugin(peers.binaries, root, [NULL]):
            assert [path.name[:4] for path in sockets(root)] == ["gdp-"]


async def test_the_sample_device_plugin_listens_in_the_root_although_its_path_is_fixed(
    peers: "Peers", root: Path
) -> None:
    peers.need("sample-device-plugin")
    with silent_kubelet(root):
        async with sample_device_plugin(peers.binaries, root):
            assert [path.name[:3] for path in sockets(root)] == ["dp."]


async def test_the_generic_device_plugin_registers(peers: "Peers", root: Path) -> None:
    peers.need("generic-device-plugin")
    async with registrations(root) as seen, generic_device_plugin(peers.binaries, root, [NULL]):
        with deadline():
            assert b"squat.ai/null" in await seen.receive()


async def test_the_sample_device_plugin_registers(peers: "Peers", root: Path) -> None:
    peers.need("sample-device-plugin")
    async with registrations(root) as seen, sample_device_plugin(peers.binaries, root):
        with deadline():
            assert b"example.com/resource" in await seen.receive()
