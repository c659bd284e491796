"""Pods are retried, and claims released, after changes of drivers, slices and nodes."""

import pytest

from devlet.cluster.client import MergePatch
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.identifiers import DriverName
from devlet.objects.node_drivers import ANNOTATION, NodeDriver, encode
from devlet.testing.waiting import until
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of
from tests.unit.control.conftest import World

pytestmark = pytest.mark.anyio


def announcing(name: str, *, gone: bool) -> Document:
    """Return a node that announces whether its driver is registered."""
    since = "2026-05-01T12:00:00Z"
    driver = NodeDriver(DriverName(DRIVER), **({"gone_since": since} if gone else {"registered_since": since}))
    found = node(name)
    return {**found, "metadata": {**found["metadata"], "annotations": {ANNOTATION: encode([driver])}}}


async def announce(world: World, name: str, *, gone: bool) -> None:
    annotations = announcing(name, gone=gone)["metadata"]["annotations"]
    await world.store.patch(kinds.NODES, name, MergePatch({"metadata": {"annotations": annotations}}))


async def test_devices_of_a_driver_that_is_gone_are_not_used_until_it_is_back(world: World) -> None:
    await world.add(announcing("n1", gone=True), device_class(), slice_of("n1", 1), claim("c"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.reason("train", f"drivers that are not connected: {DRIVER} on n1")
        await announce(world, "n1", gone=False)
        assert await world.bound("train") == {"train": "n1"}


async def test_devices_of_a_node_where_the_driver_is_registered_are_used_instead(world: World) -> None:
    await world.add(announcing("n1", gone=True), node("n2"), device_class(), slice_of("n1", 1), slice_of("n2", 1))
    await world.add(claim("c"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        assert await world.bound("train") == {"train": "n2"}


async def test_a_placed_pod_loses_its_claim_with_driver_and_slices_and_gets_it_again_with_them(
    world: World,
) -> None:
    await world.add(announcing("n1", gone=False), device_class(), slice_of("n1", 2), claim("c"), claim("started"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"), pod("runs", claim="started"))
        await world.bound("train", "runs")
        state = {"name": "main", "state": {"running": {"startedAt": "2026-05-01T12:00:00Z"}}}
        running = MergePatch({"status": {"phase": "Running", "containerStatuses": [state]}})
        await world.store.patch(kinds.PODS, "runs", running, "default", subresource="status")
        await announce(world, "n1", gone=True)
        (slice_,) = (await world.store.list(kinds.RESOURCE_SLICES)).items
        assert len(await world.devices()) == 2
        await world.store.delete(kinds.RESOURCE_SLICES, slice_["metadata"]["name"])
        await until(world.devices, lambda found: set(found.values()) == {"started"})
        await announce(world, "n1", gone=False)
        await world.add(slice_of("n1", 2))
        await until(world.devices, lambda found: set(found.values()) == {"started", "c"})
        users = (await world.claim("c"))["status"]["reservedFor"]
        assert [each["name"] for each in users] == ["train"]


async def test_a_placed_pod_loses_its_claim_even_if_the_slices_are_removed_before_the_driver(world: World) -> None:
    await world.add(announcing("n1", gone=False), device_class(), slice_of("n1", 1), claim("c"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.bound("train")
        (slice_,) = (await world.store.list(kinds.RESOURCE_SLICES)).items
        await world.store.delete(kinds.RESOURCE_SLICES, slice_["metadata"]["name"])
        await world.settled()
        await announce(world, "n1", gone=True)
        await until(world.devices, lambda found: not found)


async def test_a_lost_claim_is_deallocated_when_a_single_pod_uses_it(world: World) -> None:
    await world.add(announcing("n1", gone=False), device_class(), slice_of("n1", 1), claim("c"))
    async with world.scheduling():
        await world.add(pod("a", claim="c"), pod("b", claim="c"))
        await world.bound("a", "b")
        await announce(world, "n1", gone=True)
        (slice_,) = (await world.store.list(kinds.RESOURCE_SLICES)).items
        await world.store.delete(kinds.RESOURCE_SLICES, slice_["metadata"]["name"])
        await world.settled()
        assert len((await world.claim("c"))["status"]["reservedFor"]) == 2
        await world.remove("b")
        await until(world.devices, lambda found: not found)
