from pathlib import Path

import pytest

from devlet.cluster.client import EventType, ListOptions, WatchOptions
from devlet.cluster.served_store import GuardedDelete, GuardedWrite, ServedStore, allow
from devlet.cluster.store.store import open_store
from devlet.objects.kinds import CONFIG_MAPS

pytestmark = pytest.mark.anyio


def test_options_without_a_guard_let_every_write_pass() -> None:
    assert (GuardedWrite().guard, GuardedDelete().guard) == (allow, allow)
    allow(None, {})


async def test_the_embedded_store_can_be_served(root: Path) -> None:
    async with open_store(root / "c.db") as opened:
        store: ServedStore = opened
        assert not store.exists(CONFIG_MAPS, "a", "default")
        made = await store.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
        assert store.exists(CONFIG_MAPS, "a", "default")
        stored = store.table(CONFIG_MAPS).get(("default", "a"))
        assert stored is not None
        assert (stored.document(), stored.metadata.uid) == (made, made["metadata"]["uid"])
        page = await store.page(CONFIG_MAPS, "default", ListOptions())
        assert list(page.documents("v1")) == [made]
        assert [record.body for record in page.records] == [stored.body]
        async with store.watch_batches(CONFIG_MAPS, "default", WatchOptions()) as batches:
            batch = await anext(aiter(batches))
            assert [(event.type, event.body, event.document("v1")) for event in batch] == [
                (EventType.ADDED, stored.body, made)
            ]
