from pathlib import Path

import pytest

from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.objects.kinds import LEASES, NODES
from devlet.testing.fake_clock import FakeClock
from tests.support.peers.heartbeats import beating_node

pytestmark = pytest.mark.anyio


async def renewed(store: Store) -> str:
    lease = await store.get(LEASES, "n1", "kube-node-lease")
    return str(lease["spec"]["renewTime"])


async def test_the_lease_is_renewed_until_the_block_is_left(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_store(tmp_path / "cluster.db", Settings()) as store:
        async with beating_node(store, "n1", every=10, clock=clock) as node:
            first = await renewed(store)
            await clock.sleeping(1)
            await clock.advance(10)
            await clock.sleeping(1)
            second = await renewed(store)
        await clock.advance(100)
        assert (first, second) == ("2025-01-01T00:00:00.000000Z", "2025-01-01T00:00:10.000000Z")
        assert await renewed(store) == second
        assert await store.get(NODES, "n1") == node


async def test_a_node_that_is_there_already_is_taken_as_it_is(tmp_path: Path) -> None:
    async with open_store(tmp_path / "cluster.db", Settings()) as store:
        async with beating_node(store, "n1") as made:
            pass
        before = await renewed(store)
        async with beating_node(store, "n1", capacity={"pods": "1"}) as again:
            assert again == made
        assert await renewed(store) > before
