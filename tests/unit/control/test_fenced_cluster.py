from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.cluster.client import Cluster, MergePatch, WatchOptions
from devlet.cluster.store.store import Store, open_store
from devlet.control.fenced_cluster import FencedCluster
from devlet.errors import Unavailable
from devlet.objects.kinds import CONFIG_MAPS
from tests.support.cluster_contract.specimens import config_map

pytestmark = pytest.mark.anyio


class Fence:
    open = True

    def check(self) -> None:
        if not self.open:
            raise Unavailable("closed")


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


@pytest.fixture
def fence() -> Fence:
    return Fence()


@pytest.fixture
def fenced(store: Store, fence: Fence) -> Cluster:
    return FencedCluster(store, fence.check)


async def write_all(cluster: Cluster) -> None:
    made = await cluster.create(CONFIG_MAPS, config_map("a"), "default")
    await cluster.update(CONFIG_MAPS, made | {"data": {"k": "v"}})
    await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), "default")
    await cluster.delete(CONFIG_MAPS, "a", "default")
    await cluster.delete_collection(CONFIG_MAPS, "default")


async def test_writes_pass_while_the_check_passes(fenced: Cluster, store: Store) -> None:
    await write_all(fenced)
    assert list((await store.list(CONFIG_MAPS, "default")).items) == []


async def test_every_write_is_refused_and_not_sent_when_the_check_fails(
    fenced: Cluster, store: Store, fence: Fence
) -> None:
    made = await store.create(CONFIG_MAPS, config_map("a"), "default")
    fence.open = False
    for write in (
        fenced.create(CONFIG_MAPS, config_map("b"), "default"),
        fenced.update(CONFIG_MAPS, made | {"data": {"k": "v"}}),
        fenced.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), "default"),
        fenced.delete(CONFIG_MAPS, "a", "default"),
        fenced.delete_collection(CONFIG_MAPS, "default"),
    ):
        with pytest.raises(Unavailable, match="closed"):
            await write
    assert list((await store.list(CONFIG_MAPS, "default")).items) == [made]


async def test_reads_pass_when_the_check_fails(fenced: Cluster, store: Store, fence: Fence) -> None:
    made = await store.create(CONFIG_MAPS, config_map("a"), "default")
    fence.open = False
    assert await fenced.get(CONFIG_MAPS, "a", "default") == made
    assert list((await fenced.list(CONFIG_MAPS, "default")).items) == [made]
    async with fenced.watch(CONFIG_MAPS, "default", WatchOptions()) as events:
        assert (await anext(events)).object == made
