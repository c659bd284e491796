import signal
from pathlib import Path

import anyio
import pytest

from devlet.errors import PluginRefused, PluginUnavailable
from devlet.plugins.channels import connection
from devlet.testing.dra_script import PREPARE
from devlet.wire.dra_v1 import api_pb2 as pb
from tests.support.dra_driver_process import DraDriverProcess, Fault, dra_driver_process

pytestmark = [pytest.mark.anyio, pytest.mark.long]

V1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"


async def prepare(driver: DraDriverProcess, name: str) -> pb.NodePrepareResourceResponse:
    request = pb.NodePrepareResourcesRequest(claims=[pb.Claim(namespace="default", uid=f"u-{name}", name=name)])
    async with connection("p", driver.directory / "dra.sock", within=60, max_message=1 << 20) as wire:
        blob = await wire.call(f"{V1}/NodePrepareResources", request.SerializeToString(), timeout=60)
    return pb.NodePrepareResourcesResponse.FromString(blob).claims[f"u-{name}"]


async def test_orders_are_in_force_when_they_are_given_and_calls_can_be_read(root: Path) -> None:
    async with dra_driver_process(root) as driver:
        assert driver.calls == []
        await driver.order(faults=(Fault("fail", text="not now"),))
        with pytest.raises(PluginRefused, match="not now"):
            await prepare(driver, "train")
        await driver.order()
        assert (await prepare(driver, "serve")).devices
        assert [call.names for call in await driver.until_asked(PREPARE, 2)] == [("train",), ("serve",)]
        assert list(driver.prepared) == ["u-serve"]
        await driver.order(service=False)
        assert not (driver.directory / "dra.sock").exists()


async def test_claims_calls_and_orders_outlive_a_killed_process(root: Path) -> None:
    async with dra_driver_process(root) as driver:
        first = await prepare(driver, "train")
        await driver.order(faults=(Fault("hang", after=True),))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_killed_while_asked, driver)
        await driver.order(problems={"late": "told between two lives"})
    async with dra_driver_process(root) as driver:
        assert await prepare(driver, "train") == first
        assert (await prepare(driver, "late")).error == "told between two lives"
        assert set(driver.prepared) == {"u-train", "u-serve"}
        assert [call.names for call in driver.asked(PREPARE)] == [("train",), ("serve",), ("train",), ("late",)]


async def _killed_while_asked(driver: DraDriverProcess) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_kill, driver)
        with pytest.raises(PluginUnavailable):
            await prepare(driver, "serve")


async def _kill(driver: DraDriverProcess) -> None:
    await driver.until_asked(PREPARE, 2)
    driver.program.send_signal(signal.SIGKILL)
    await driver.program.wait()


async def test_two_instances_share_their_claims_and_have_calls_of_their_own(root: Path) -> None:
    async with dra_driver_process(root) as one, dra_driver_process(root, instance="b") as two:
        await prepare(one, "train")
        assert list(two.prepared) == ["u-train"]
        assert (len(one.calls), len(two.calls)) == (1, 0)
        assert {path.name for path in (root / "plugins_registry").iterdir()} == {
            "gpu.example.com-reg.sock",
            "gpu.example.com-b-reg.sock",
        }
