from typing import TYPE_CHECKING

import pytest

from devlet.errors import Conflict, NotFound
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sdk.slices.served_slices import ServedSlices, pool_of
from devlet.testing.waiting import until

if TYPE_CHECKING:
    from tests.unit.sdk.slices.conftest import World

pytestmark = pytest.mark.anyio

SELECTOR = "spec.driver=gpu.example.com,spec.nodeName=n"


def document(pool: str = "p", driver: str = "gpu.example.com", node: str = "n") -> Document:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": "s-"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d", "attributes": {"a": {"int": 1}}}],
        },
    }


@pytest.mark.spec("DN-6.2a")
async def test_only_the_slices_of_the_driver_on_the_node_are_seen(world: "World") -> None:
    for each in (document(), document(driver="other.example.com"), document(node="m")):
        await world.store.create(RESOURCE_SLICES, each)
    found = await ServedSlices(world.server, SELECTOR).list()
    assert [(each["spec"]["driver"], each["spec"]["nodeName"]) for each in found] == [("gpu.example.com", "n")]


@pytest.mark.spec("DN-11.27")
@pytest.mark.parametrize("version", RESOURCE_SLICES.kind.api_versions)
async def test_whatever_version_is_served_slices_look_the_same(world: "World", version: str) -> None:
    world.server.served = (version,)
    slices = ServedSlices(world.server, SELECTOR)
    await slices.find()
    made = await slices.create(document())
    assert made["apiVersion"] == "resource.k8s.io/v1" and made["spec"]["devices"] == document()["spec"]["devices"]
    updated = await slices.update({**made, "spec": {**made["spec"], "devices": [{"name": "e"}]}})
    assert updated["spec"]["devices"] == [{"name": "e"}] and await slices.list() == [updated]
    informer = slices.informer(SystemClock())
    async with running(informer.run):
        assert informer.by_index("pool", "p") == [updated]
    await slices.delete(updated)
    assert await slices.list() == []


@pytest.mark.spec("DN-11.27")
async def test_a_server_that_was_upgraded_meanwhile_is_followed(world: "World") -> None:
    """Versions that are no longer served may have been the only ones when the driver started."""
    old, new = RESOURCE_SLICES.kind.api_versions[1:], RESOURCE_SLICES.kind.api_versions[:1]
    world.server.served = old
    slices = ServedSlices(world.server, SELECTOR)
    await slices.find()
    made = await slices.create(document())
    informer = slices.informer(SystemClock())
    async with running(informer.run):
        assert informer.by_index("pool", "p") == [made]
        world.server.served = new
        world.server.cut()
        await world.store.create(RESOURCE_SLICES, document("q"))

        async def seen() -> list[Document]:
            return informer.by_index("pool", "q")

        (found,) = await until(seen)
        assert found["apiVersion"] == "resource.k8s.io/v1" and made in informer.all()
    assert len(await slices.list()) == 2


async def test_a_cluster_without_slices_says_so(world: "World") -> None:
    world.server.served = ()
    with pytest.raises(NotFound, match=r"in none of resource.k8s.io/v1, "):
        await ServedSlices(world.server, SELECTOR).find()


@pytest.mark.spec("DN-6.4g")
async def test_a_slice_that_changed_is_neither_updated_nor_deleted(world: "World") -> None:
    slices = ServedSlices(world.server, SELECTOR)
    old = await slices.create(document())
    await slices.update({**old, "spec": {**old["spec"], "devices": []}})
    with pytest.raises(Conflict):
        await slices.update(old)
    with pytest.raises(Conflict):
        await slices.delete(old)


@pytest.mark.spec("DN-6.9")
async def test_slices_of_other_pools_are_left_out(world: "World") -> None:
    for pool in ("p", "q"):
        await world.store.create(RESOURCE_SLICES, document(pool))
    slices = ServedSlices(world.server, SELECTOR, "q")
    assert [pool_of(each) for each in await slices.list()] == ["q"]
    informer = slices.informer(SystemClock())
    async with running(informer.run):
        assert [pool_of(each) for each in informer.all() if each] == ["q"]
        assert informer.by_index("pool", "p") == []


async def test_long_lists_are_read_page_by_page(world: "World", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devlet.sdk.slices.served_slices._PAGE", 2)
    for i in range(5):
        await world.store.create(RESOURCE_SLICES, document(f"p{i}"))
    assert len(await ServedSlices(world.server, SELECTOR).list()) == 5
