from pathlib import Path

import anyio
import pytest

from devlet.errors import InvalidInput, PluginRefused, PluginUnavailable
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.device_plugin import Offer, connected
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.plugin_script import Call, Script

pytestmark = pytest.mark.anyio

IDS = [DeviceID("dev-0")]


async def test_calls_are_kept_in_their_order_and_can_be_waited_for() -> None:
    script = Script()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(script.until_asked, "Allocate", 2)
        await anyio.lowlevel.checkpoint()
        script.record(Call("Allocate", ("a",)))
        script.record(Call("ListAndWatch"))
        script.record(Call("Allocate", ("b",)))
    assert script.asked("Allocate") == [Call("Allocate", ("a",)), Call("Allocate", ("b",))]
    assert [call.method for call in script.calls] == ["Allocate", "ListAndWatch", "Allocate"]


async def test_a_method_fails_until_it_recovers(root: Path) -> None:
    async with FakeDevicePlugin(root) as fake, connected(Offer(ResourceName(fake.resource), fake.path)) as plugin:
        fake.fail("Allocate", "NOT_FOUND", "no such device")
        for _ in range(2):
            with pytest.raises(PluginRefused, match="no such device"):
                await plugin.allocate(IDS)
        await plugin.pre_start(IDS)
        fake.recover("Allocate")
        assert (await plugin.allocate(IDS)).env == {"VENDOR_COM_GPU": "dev-0"}


async def test_a_call_that_hangs_is_answered_when_the_method_recovers(root: Path) -> None:
    answers: list[str] = []

    async with FakeDevicePlugin(root) as fake, connected(Offer(ResourceName(fake.resource), fake.path)) as plugin:

        async def allocate() -> None:
            answers.append((await plugin.allocate(IDS)).env["VENDOR_COM_GPU"])

        fake.hang("Allocate")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(allocate)
            await fake.until_asked("Allocate")
            assert answers == []
            fake.recover("Allocate")
    assert answers == ["dev-0"]


async def test_the_last_fault_of_a_method_counts(root: Path) -> None:
    async with FakeDevicePlugin(root) as fake, connected(Offer(ResourceName(fake.resource), fake.path)) as plugin:
        fake.hang("PreStartContainer")
        fake.fail("PreStartContainer", "UNAVAILABLE", "second")
        with pytest.raises(PluginUnavailable, match="second"):
            await plugin.pre_start(IDS)


def test_a_status_that_gRPC_does_not_know_is_a_mistake_of_the_test() -> None:
    with pytest.raises(InvalidInput, match="there is no gRPC status 'NO_SUCH_STATUS'"):
        Script().fail("Allocate", "NO_SUCH_STATUS")
