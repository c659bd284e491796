from pathlib import Path

import pytest

from devlet.cluster.client import DeleteOptions, MergePatch, WriteOptions
from devlet.cluster.served_store import GuardedDelete, GuardedWrite
from devlet.cluster.store.guards import check
from devlet.cluster.store.store import open_store
from devlet.errors import Forbidden, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS


def refuse(new: Document | None, old: Document | None) -> None:
    raise Forbidden(f"new={new is not None} old={old is not None}")


def test_options_of_the_port_have_no_guard() -> None:
    check(WriteOptions(), {}, None)
    check(DeleteOptions(), None, {})
    with pytest.raises(Forbidden):
        check(GuardedWrite(guard=refuse), {}, None)


@pytest.mark.anyio
async def test_a_guard_sees_every_write_and_can_stop_it(root: Path) -> None:
    write, delete = GuardedWrite(guard=refuse), GuardedDelete(guard=refuse)
    async with open_store(root / "c.db") as store:
        with pytest.raises(Forbidden, match="new=True old=False"):
            await store.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default", options=write)
        with pytest.raises(NotFound):
            await store.get(CONFIG_MAPS, "a", "default")
        made = await store.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
        with pytest.raises(Forbidden, match="new=True old=True"):
            await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"x": "1"}}), "default", options=write)
        with pytest.raises(Forbidden, match="new=False old=True"):
            await store.delete(CONFIG_MAPS, "a", "default", delete)
        with pytest.raises(Forbidden, match="new=False old=True"):
            await store.delete_collection(CONFIG_MAPS, "default", delete)
        assert await store.get(CONFIG_MAPS, "a", "default") == made
