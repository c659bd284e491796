from argparse import ArgumentParser
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from devlet.errors import InvalidInput
from devlet.examples.fake_gpu_dra import FakeGpus, Gpu
from devlet.objects.identifiers import DeviceName, DriverName, PoolName, RequestRef
from devlet.objects.types.claim import DeviceAllocationConfiguration, DeviceResult, ResourceClaim
from devlet.objects.types.device_class import OpaqueConfiguration
from devlet.sdk.dra_driver import DraOptions
from devlet.sdk.values import HEALTHY, UNHEALTHY, Capacity, Claim, ClaimRef, Device, Mount, Pool, Version

pytestmark = pytest.mark.anyio

REF = ClaimRef("default", "training", "uid-1")


async def started(driver: FakeGpus, root: Path) -> FakeGpus:
    await driver.setup(DraOptions("n1", kubelet=root))
    return driver


async def pool(driver: FakeGpus) -> Pool:
    async with aclosing(driver.devices()) as pools:  # type: ignore[type-var]
        return (await anext(pools))["n1"]


def claim(*devices: str, configs: tuple[Mapping[str, Any], ...] = (), **more: Any) -> Claim:
    results = tuple(
        DeviceResult(
            request=RequestRef("gpu"),
            driver=DriverName(FakeGpus.name),
            pool=PoolName("n1"),
            device=DeviceName(device),
            **more,
        )
        for device in devices
    )
    opaque = [OpaqueConfiguration(driver=DriverName(FakeGpus.name), parameters=dict(each)) for each in configs]
    settings = tuple(DeviceAllocationConfiguration(opaque=each) for each in opaque)
    return Claim(REF, results, settings, ResourceClaim(), {})


async def test_a_gpu_is_published_with_attributes_to_select_it_by(root: Path) -> None:
    driver = await started(FakeGpus([Gpu("gpu-0", "Big", 80, 1)]), root)
    (device,) = (await pool(driver)).devices
    uuid = device.attributes["uuid"]
    assert device == Device(
        "gpu-0",
        {"model": "Big", "uuid": uuid, "driverVersion": Version("1.2.0"), "numa": 1, "type": "gpu"},
        {"memory": "80Gi"},
        [],
    )
    again = await started(FakeGpus([Gpu("gpu-0", "Big", 80, 1)]), root)
    assert (await pool(again)).devices[0].attributes["uuid"] == uuid


async def test_each_claim_of_a_shared_gpu_has_some_memory(root: Path) -> None:
    (device,) = (await pool(await started(FakeGpus([Gpu("gpu-0")], shared=True), root))).devices
    memory = device.capacity["memory"]
    assert device.allow_multiple_allocations and isinstance(memory, Capacity) and memory.policy
    assert (memory.value, memory.policy["default"]) == ("40Gi", "40Gi")


async def test_partitions_and_the_whole_gpu_share_the_memory(root: Path) -> None:
    found = await pool(await started(FakeGpus([Gpu("gpu-0")], partitions=2), root))
    assert found.counters == {"gpu-0": {"memory": "40Gi"}}
    assert [(each.name, each.consumes, each.capacity["memory"]) for each in found.devices] == [
        ("gpu-0", {"gpu-0": {"memory": "40Gi"}}, "40Gi"),
        ("gpu-0-part-0", {"gpu-0": {"memory": "20480Mi"}}, "20480Mi"),
        ("gpu-0-part-1", {"gpu-0": {"memory": "20480Mi"}}, "20480Mi"),
    ]
    assert len({each.attributes["uuid"] for each in found.devices}) == 3


async def test_a_file_makes_a_gpu_unhealthy_and_contains_the_problem(root: Path) -> None:
    driver = await started(FakeGpus([Gpu("gpu-0"), Gpu("gpu-1")], sick=root / "sick"), root)
    async with aclosing(driver.health()) as lists:  # type: ignore[type-var]
        assert [each.health for each in await anext(lists)] == [HEALTHY, HEALTHY]
    (root / "sick").mkdir()
    (root / "sick/gpu-1").write_text("too hot\n")
    async with aclosing(driver.health()) as lists:  # type: ignore[type-var]
        ill = (await anext(lists))[1]
    assert (ill.pool, ill.device, ill.health, ill.message) == ("n1", "gpu-1", UNHEALTHY, "too hot")
    tainted = [[taint.key for taint in each.taints] for each in (await pool(driver)).devices]
    assert tainted == [[], ["gpu.example.com/unhealthy"]]


async def test_a_claim_can_be_prepared_again_and_unprepared_by_another_process(root: Path) -> None:
    driver = await started(FakeGpus([Gpu("gpu-0")]), root)
    prepared = await driver.prepare(claim("gpu-0"))
    assert await driver.prepare(claim("gpu-0")) == prepared
    (one,) = prepared
    assert one.env["GPU_0"].startswith("GPU-") and one.env["GPU_0_SHARING"] == "exclusive"
    assert one.metadata == {"uuid": one.env["GPU_0"]}
    file = root / "plugins/gpu.example.com/claims/uid-1/gpu-0"
    assert one.mounts == [Mount(str(file), "/etc/fake-gpu/gpu-0")] and file.read_text() == "exclusive\n"
    another = await started(FakeGpus([Gpu("gpu-0")]), root)
    assert list(await another.log.entries()) == ["uid-1"]
    for _ in range(2):
        await another.unprepare(REF)
    assert not file.exists() and await another.log.entries() == {}


async def test_the_parameters_of_a_claim_override_those_of_its_class(root: Path) -> None:
    driver = await started(FakeGpus([Gpu("gpu-0")]), root)
    (one,) = await driver.prepare(claim("gpu-0", configs=({"sharing": "exclusive"}, {"sharing": "timeslice"})))
    assert one.env["GPU_0_SHARING"] == "timeslice"


@pytest.mark.parametrize("wrong", [{"sharing": "both"}, {"sharingg": "timeslice"}])
async def test_wrong_parameters_are_an_error_and_leave_nothing_behind(root: Path, wrong: dict[str, str]) -> None:
    driver = await started(FakeGpus([Gpu("gpu-0")]), root)
    with pytest.raises(InvalidInput, match=r"parameters of request gpu: .*sharing"):
        await driver.prepare(claim("gpu-0", configs=(wrong,)))
    assert await driver.log.entries() == {} and not (root / "plugins").exists()


async def test_a_share_names_the_amount_of_its_memory(root: Path) -> None:
    driver = await started(FakeGpus([Gpu("gpu-0")], shared=True), root)
    (one,) = await driver.prepare(claim("gpu-0", consumed_capacity={"memory": "10Gi"}))
    assert one.env["GPU_0_MEMORY"] == "10Gi"


def test_flags_set_the_properties_of_the_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    driver, parser = FakeGpus(), ArgumentParser()
    driver.arguments(parser)
    words = "--driver-name x.example.com --num-devices 2 --model Big --memory 80 --partitions 4 --numa-nodes 2"
    driver.configure(parser.parse_args(words.split()))
    assert (driver.name, driver.partitions, driver.shared) == ("x.example.com", 4, False)
    assert driver.gpus == [Gpu("gpu-0", "Big", 80, 0), Gpu("gpu-1", "Big", 80, 1)]
    with pytest.raises(InvalidInput, match="at least 1"):
        driver.configure(parser.parse_args(["--memory", "0"]))
    with pytest.raises(SystemExit):
        parser.parse_args(["--shared", "--partitions", "2"])
    assert "not allowed with" in capsys.readouterr().err
