"""Every change of a slice is kept, and can be waited for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devlet.cluster.store.store import Store, open_store
from devlet.kit.parts import running
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sanity.slice_history import SliceHistory
from devlet.testing.fake_dra_cluster import publish

pytestmark = pytest.mark.anyio

WITHIN = 60.0


@asynccontextmanager
async def history(root: Path) -> AsyncIterator[tuple[Store, SliceHistory]]:
    async with open_store(root / "cluster.db") as store:
        kept = SliceHistory(store)
        async with running(kept.run):
            yield store, kept


async def test_slices_are_those_of_now_and_changes_those_of_ever(root: Path) -> None:
    async with history(root) as (store, kept):
        await publish(store, "a.example.com", "n1", 1)
        await publish(store, "a.example.com", "n1", 2)
        await publish(store, "b.example.com", "n1", 1)
        assert await kept.until(lambda: kept.count == 3, WITHIN)
        assert len(kept.of("a.example.com")[0]["spec"]["devices"]) == 2
        await store.delete(RESOURCE_SLICES, "n1-a.example.com")
        assert await kept.until(lambda: not kept.of("a.example.com"), WITHIN)
        assert [change.type for change in kept.changes] == ["ADDED", "MODIFIED", "ADDED", "DELETED"]
        assert list(kept.slices) == ["n1-b.example.com"]


async def test_what_does_not_come_is_not_waited_for_longer(root: Path) -> None:
    async with history(root) as (_, kept):
        assert not await kept.until(lambda: kept.count == 1, 0.05)
