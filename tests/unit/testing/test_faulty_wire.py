"""Real plugins and drivers on one side; a node in this process on the other."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from devlet.errors import InvalidInput
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.faulty_wire import FaultyWire
from devlet.testing.grpc_faults import Faults
from devlet.testing.node import Node
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

GPU = "vendor.com/gpu"
DRIVER = "gpu.example.com"


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with Node.start(timeouts={"draCall": 2}) as node:
        yield node


@pytest.fixture
async def wire(node: Node) -> AsyncIterator[FaultyWire]:
    async with FaultyWire.between(node.root) as wire:
        yield wire


async def test_a_device_plugin_registers_through_it(node: Node, wire: FaultyWire) -> None:
    async with FakeDevicePlugin(wire.device_plugins, GPU, 2, follow=True):
        await node.until_registered(GPU)
        (call,) = await wire.faults.until_over("Register")
        assert (call.request.resource_name, call.status) == (GPU, "OK")
        (list_call,) = wire.faults.asked("ListAndWatch")
        assert len(list_call.answer.devices) == 2
    await node.until_left(GPU)


async def test_a_device_plugin_is_used_through_it(node: Node, wire: FaultyWire) -> None:
    async with FakeDevicePlugin(wire.device_plugins, GPU, 2, follow=True):
        await node.until_registered(GPU)
        await node.create_pod("train", limits={GPU: 1})
        await node.until_running("train")
        assert [len(call.request.container_requests) for call in wire.faults.asked("Allocate")] == [1]


@pytest.mark.parametrize("crashes", [False, True])
async def test_a_device_plugin_sees_the_node_come_back(node: Node, wire: FaultyWire, crashes: bool) -> None:
    async with FakeDevicePlugin(wire.device_plugins, GPU, 2, follow=True):
        await node.until_registered(GPU)
        if crashes:
            await node.crash()
        await node.restart()
        await node.until_registered(GPU)
        assert [call.status for call in await wire.faults.until_over("Register", 2)] == ["OK", "OK"]


async def test_a_dra_driver_registers_and_prepares_through_it(node: Node, wire: FaultyWire) -> None:
    async with FakeDraDriver(wire.root, DRIVER, cdi_directory=node.cdi):
        await node.until_registered(DRIVER)
        info = wire.faults.asked("GetInfo")[0].answer
        assert info.endpoint == str(wire.plugins / DRIVER / "dra.sock")
        assert (node.plugins / DRIVER / "dra.sock").is_socket()
        await node.create_class()
        await node.create_slice(2)
        await node.create_claim("training")
        await node.create_pod("train", claim="training")
        await node.until_running("train")
        assert [claim.name for claim in wire.faults.asked("NodePrepareResources")[0].request.claims] == ["training"]
    await node.until_left(DRIVER)
    await until(anyio.Path(node.plugins / DRIVER / "dra.sock").exists, lambda there: not there)


async def test_a_socket_is_found_by_name_and_all_connections_can_be_cut(node: Node, wire: FaultyWire) -> None:
    async with FakeDevicePlugin(wire.device_plugins, GPU, 2, follow=True) as plugin:
        await node.until_registered(GPU)
        proxy = wire.proxy(plugin.path.name)
        accepted = proxy.socket.accepted
        wire.cut()
        await wire.faults.until_over("ListAndWatch")
        assert accepted >= 1


async def test_a_socket_that_is_not_there_is_an_error_that_names_those_that_are(wire: FaultyWire) -> None:
    with pytest.raises(InvalidInput, match=r"there is no socket gpu.sock now; there are kubelet.sock"):
        wire.proxy("gpu.sock")


async def test_a_socket_anywhere_gets_its_front_among_the_plugins(node: Node, root: Path) -> None:
    wire = FaultyWire(node.root, root / "driver", Faults())
    assert wire._front(Path("/run/gpu/dra.sock")) == node.root / "plugins" / "gpu" / "dra.sock"


async def test_a_path_that_is_too_long_is_an_error(root: Path) -> None:
    wire = FaultyWire(root / ("x" * 100), root, Faults())
    with pytest.raises(InvalidInput, match="use shorter roots"):
        await wire._served(root / "plugins" / "s.sock")


async def test_it_waits_for_a_node_that_is_not_there_yet(root: Path) -> None:
    async with FaultyWire.between(root) as wire:
        assert wire.root.parent == root
        assert not (wire.device_plugins / "kubelet.sock").exists()
        async with Node.start(root):

            async def there() -> bool:
                return (wire.device_plugins / "kubelet.sock").is_socket()

            await until(there)


async def test_an_error_of_the_block_stays_itself(root: Path) -> None:
    with pytest.raises(KeyError):
        async with FaultyWire.between(root):
            raise KeyError("mine")


async def test_it_can_be_left_while_a_call_hangs(node: Node) -> None:
    async with FaultyWire.between(node.root) as wire:
        hang = wire.faults.hang("Register")
        async with anyio.create_task_group() as tasks:

            async def plug() -> None:
                async with FakeDevicePlugin(wire.device_plugins, GPU, 2, follow=True):
                    await anyio.sleep_forever()

            tasks.start_soon(plug)
            await hang.until_hit()
            tasks.cancel_scope.cancel()
