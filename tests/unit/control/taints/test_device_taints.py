"""Taints of devices, from slices and rules."""

from typing import TYPE_CHECKING

import pytest
from anyio.lowlevel import checkpoint

from devlet.cluster.client import MergePatch
from devlet.control.informers import Informers
from devlet.control.taints.device_taints import DeviceTaints
from devlet.objects import kinds
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.taint_rule import DeviceTaintSelector

if TYPE_CHECKING:
    from tests.unit.control.taints.conftest import World

pytestmark = pytest.mark.anyio


def device(name: str = "d0", pool: str = "p") -> DeviceIdentity:
    return DeviceIdentity(DriverName("gpu.example.com"), PoolName(pool), DeviceName(name))


def shown(taints: DeviceTaints, name: str = "d0", pool: str = "p") -> list[str]:
    return [str(taint) for taint in taints.of(device(name, pool))]


async def test_taints_of_the_driver_come_first_then_those_of_rules_by_name(world: "World") -> None:
    await world.publish("d0")
    await world.rule("z", effect="NoSchedule", selector={"device": "d0"}, value="v")
    await world.rule("b", selector={})
    await world.rule("a", selector={"driver": "gpu.example.com", "pool": "p"})
    await world.rule("other", selector={"pool": "q"})
    await world.rule("idle", effect="None")
    await world.rule("nothing", selector=None)
    informers = Informers(world.store)
    taints = DeviceTaints(informers)
    async with informers.running():
        assert shown(taints) == [
            "broken:NoExecute",
            "dry:NoExecute of DeviceTaintRule a",
            "dry:NoExecute of DeviceTaintRule b",
            "dry=v:NoSchedule of DeviceTaintRule z",
        ]
        assert shown(taints, "d1") == [
            "dry:NoExecute of DeviceTaintRule a",
            "dry:NoExecute of DeviceTaintRule b",
        ]
        assert shown(taints, "gone", "gone") == ["dry:NoExecute of DeviceTaintRule b"]


async def test_slices_of_older_generations_do_not_count(world: "World") -> None:
    await world.publish("d0", name="new", generation=2)
    await world.publish("d0", "d1", name="old", generation=1)
    informers = Informers(world.store)
    taints = DeviceTaints(informers)
    async with informers.running():
        assert shown(taints) == ["broken:NoExecute"]
        assert shown(taints, "d1") == []
        found = {slice_.metadata.name: taints.is_published(slice_) for slice_ in informers.slices.all()}
        assert found == {"new": True, "old": False}


async def test_changes_without_consequences_are_not_reported(world: "World") -> None:
    informers = Informers(world.store)
    heard: list[DeviceTaintSelector] = []
    DeviceTaints(informers, heard.append)
    async with informers.running():
        await world.publish()
        await world.publish("d0", effect="None")
        await world.publish("d1", name="far", pool="q")
        await world.rule("idle", effect="None")
        while not heard:
            await checkpoint()
        assert [selector.pool for selector in heard] == ["q"]


async def test_a_rule_with_a_new_selector_reports_the_old_and_the_new_devices(world: "World") -> None:
    informers = Informers(world.store)
    heard: list[tuple[str | None, list[str]]] = []
    taints = DeviceTaints(informers, lambda selector: heard.append((selector.pool, shown(taints))))
    async with informers.running():
        await world.rule("r", selector={"pool": "p"})
        await world.store.patch(kinds.DEVICE_TAINT_RULES, "r", MergePatch({"spec": {"deviceSelector": {"pool": "q"}}}))
        while len(heard) < 3:
            await checkpoint()
        assert heard == [("p", ["dry:NoExecute of DeviceTaintRule r"]), ("p", []), ("q", [])]
        await world.store.delete(kinds.DEVICE_TAINT_RULES, "r")
        while len(heard) < 4:
            await checkpoint()
        assert shown(taints, pool="q") == []


async def test_a_device_that_moves_to_another_slice_keeps_its_taint(world: "World") -> None:
    await world.publish("d0", name="a")
    await world.publish("d0", name="b")
    informers = Informers(world.store)
    heard: list[DeviceTaintSelector] = []
    taints = DeviceTaints(informers, heard.append)
    async with informers.running():
        heard.clear()
        await world.store.delete(kinds.RESOURCE_SLICES, "a")
        while not heard:
            await checkpoint()
        assert shown(taints) == ["broken:NoExecute"]
        await world.store.delete(kinds.RESOURCE_SLICES, "b")
        while len(heard) < 2:
            await checkpoint()
        assert shown(taints) == []
