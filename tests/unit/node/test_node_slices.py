from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.store.store import Store, open_store
from devlet.errors import Unavailable
from devlet.kit.clock import SystemClock
from devlet.node.node_slices import NodeSlices, Settings
from devlet.objects.identifiers import DriverName, NodeName
from devlet.objects.kinds import BUILT_IN, RESOURCE_SLICES

pytestmark = pytest.mark.anyio

WHEN = datetime(2026, 1, 2, tzinfo=UTC)


class Wipes:
    def records(self) -> dict[DriverName, datetime]:
        return {DriverName("a.com"): WHEN}


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db", clock=SystemClock(), kinds=BUILT_IN) as store:
        yield store


async def put(store: Store, name: str, **where: Any) -> None:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "a.com", "pool": pool, "devices": [{"name": "d"}]} | where
    await store.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})


async def test_the_slices_of_this_node_are_found(store: Store) -> None:
    await put(store, "mine", nodeName="n1")
    await put(store, "other", nodeName="n2")
    await put(store, "everywhere", allNodes=True)
    slices = NodeSlices(store, NodeName("n1"), Wipes())
    assert [s["metadata"]["name"] for s in await slices.slices() or ()] == ["mine"]
    assert slices.records() == {"a.com": WHEN}


class Down:
    async def list(self, *args: Any, **kwargs: Any) -> Any:
        raise Unavailable("the cluster is not there")


class Silent:
    async def list(self, *args: Any, **kwargs: Any) -> Any:
        await anyio.sleep_forever()


@pytest.mark.parametrize("cluster", [Down(), Silent()])
async def test_no_answer_from_the_cluster_is_not_an_error(cluster: object) -> None:
    slices = NodeSlices(cast(Cluster, cluster), NodeName("n1"), Wipes(), Settings(ask=0.01))
    assert await slices.slices() is None
