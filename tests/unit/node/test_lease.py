import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.errors import Conflict, NotFound, Unavailable
from devlet.kit.parts import running
from devlet.node.lease import NodeLease, Settings, renewed
from devlet.objects.documents import Document
from devlet.objects.identifiers import NodeName
from devlet.objects.kinds import LEASES, NODES
from devlet.objects.types.core import NODE_LEASES
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

NOW = "2025-01-01T00:00:00.000000Z"


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


class Away:
    """A cluster that cannot be reached for writes of leases while `answers` is False, or does not answer at all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.answers = True
        self.hangs = False
        self.tries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def update(self, *arguments: Any, **options: Any) -> Document:
        self.tries += 1
        if self.hangs:
            await anyio.sleep_forever()
        if not self.answers:
            raise Unavailable("connection refused")
        return await self._store.update(*arguments, **options)


async def lease(store: Store, *, not_before: str = "") -> Document:
    """Return the lease once it was renewed at that time."""

    async def read() -> Document | None:
        try:
            return await store.get(LEASES, "n1", NODE_LEASES)
        except NotFound:
            return None

    found = await until(read, lambda each: each is not None and each["spec"]["renewTime"] >= not_before)
    assert found is not None
    return found


@pytest.fixture
async def node(store: Store) -> str:
    """Create the Node and return its UID."""
    uid: str = (await store.create(NODES, {"metadata": {"name": "n1"}}))["metadata"]["uid"]
    return uid


def beating(cluster: Any, clock: FakeClock, owner: str | None = None, settings: Settings = Settings()) -> Any:
    return running(NodeLease(cluster, NodeName("n1"), lambda: owner, clock, settings).run)


@pytest.mark.spec("KA-9.3a")
async def test_the_lease_is_created_and_renewed_every_ten_seconds(store: Store, node: str) -> None:
    clock = FakeClock()
    async with beating(store, clock, node):
        made = await lease(store)
        assert made["spec"] == {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": NOW}
        assert made["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node}]
        for seconds in (10, 20):
            await clock.sleeping(1)
            await clock.advance(10)
            assert (await lease(store, not_before=f"2025-01-01T00:00:{seconds}"))["metadata"]["uid"] == (
                made["metadata"]["uid"]
            )


async def test_a_lease_from_before_a_restart_is_renewed_at_once(store: Store, node: str) -> None:
    async with beating(store, FakeClock()):
        before = await lease(store)
    later = FakeClock()
    await later.advance(3)
    async with beating(store, later, node):
        now = await lease(store, not_before="2025-01-01T00:00:03")
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    assert [each["uid"] for each in now["metadata"]["ownerReferences"]] == [node]


async def test_a_lease_that_is_deleted_or_changed_is_renewed(store: Store) -> None:
    clock = FakeClock()
    async with beating(store, clock):
        made = await lease(store)
        assert "ownerReferences" not in made["metadata"]
        await store.delete(LEASES, "n1", NODE_LEASES)
        await clock.sleeping(1)
        await clock.advance(11)
        again = await lease(store)
        assert again["metadata"]["uid"] != made["metadata"]["uid"]
        await store.patch(LEASES, "n1", MergePatch({"metadata": {"labels": {"theirs": "yes"}}}), NODE_LEASES)
        await clock.sleeping(1)
        await clock.advance(11)
        now = await lease(store, not_before="2025-01-01T00:00:20")
        assert now["metadata"]["labels"] == {"theirs": "yes"}


@pytest.mark.spec("KA-9.3b")
async def test_while_the_api_is_unavailable_renewal_is_retried_quickly_and_logged_once(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    clock, cluster = FakeClock(), Away(store)
    caplog.set_level(logging.INFO, "devlet")
    async with beating(cluster, clock):
        await lease(store)
        cluster.answers = False
        await clock.sleeping(1)
        for _ in range(40):
            await clock.advance(1)
            await clock.sleeping(1)
        assert cluster.tries > 5
        cluster.answers = True
        for _ in range(8):
            await clock.advance(1)
            await clock.sleeping(1)
        await lease(store, not_before="2025-01-01T00:00:40")
    texts = [record.message for record in caplog.records if record.name == "devlet.node.lease"]
    assert texts == ["lease not renewed", "lease renewed again"]


async def test_a_renewal_without_an_answer_is_retried(store: Store) -> None:
    clock, cluster = FakeClock(), Away(store)
    async with beating(cluster, clock, settings=Settings(timeout=0.01)):
        await lease(store)
        cluster.hangs = True
        await clock.sleeping(1)
        await clock.advance(10)
        await clock.sleeping(1)
        assert cluster.tries >= 1
        cluster.hangs = False
        await clock.advance(10)
        await lease(store, not_before="2025-01-01T00:00:10")


async def test_the_lease_is_deleted_with_its_node(store: Store, node: str) -> None:
    async with beating(store, FakeClock(), node):
        await lease(store)
    await store.delete(NODES, "n1")

    async def left() -> list[Document]:
        return list((await store.list(LEASES, NODE_LEASES)).items)

    await until(left, lambda found: not found)


def test_fields_of_other_writers_stay_in_the_lease() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"}
    before = {
        "metadata": {"name": "n1", "ownerReferences": [other, {"kind": "Node", "name": "n1", "uid": "old"}]},
        "spec": {"leaseTransitions": 3, "renewTime": "long ago"},
    }
    after = renewed(before, "n1", "new", 40, NOW)
    assert after["spec"] == {
        "leaseTransitions": 3,
        "renewTime": NOW,
        "holderIdentity": "n1",
        "leaseDurationSeconds": 40,
    }
    assert [each["uid"] for each in after["metadata"]["ownerReferences"]] == ["1", "new"]
    assert before["spec"] == {"leaseTransitions": 3, "renewTime": "long ago"}


async def test_after_a_conflict_the_lease_is_read_again(store: Store) -> None:
    class Once(Away):
        async def update(self, *arguments: Any, **options: Any) -> Document:
            self.tries += 1
            if self.tries == 1:
                raise Conflict("another writer was faster")
            return await self._store.update(*arguments, **options)

    clock, cluster = FakeClock(), Once(store)
    async with beating(cluster, clock):
        await lease(store)
        await clock.sleeping(1)
        await clock.advance(10)
        await lease(store, not_before="2025-01-01T00:00:10")
        assert cluster.tries == 2
