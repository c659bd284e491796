from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import ListOptions, MergePatch, ObjectList, WatchEvent, WatchOptions
from devlet.cluster.store.store import Store, open_store
from devlet.errors import DevletError, Expired, Forbidden, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.parts import running
from devlet.node.claims.claim_watch import ClaimWatch, Settings
from devlet.node.claims.records import ClaimKey
from devlet.objects.documents import Document
from devlet.objects.identifiers import ClaimName, PodUID
from devlet.objects.kinds import RESOURCE_CLAIMS, Resource
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline
from tests.support.cluster_contract.specimens import claim

pytestmark = pytest.mark.anyio

A, B = PodUID("a"), PodUID("b")
STEADY = Settings(retry=Backoff(1.0, 30.0, jitter=0.0))


def key(name: str) -> ClaimKey:
    return ClaimKey("default", ClaimName(name))


GPU, NIC = key("gpu"), key("nic")


class Spied:
    """The store, which records its calls and can refuse some."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.watches: list[str] = []  # selectors
        self.gets: list[str] = []
        self.unserved: tuple[str, ...] = ()
        self.no_watch: list[DevletError] = []  # what the next watches fail with
        self.no_get: list[DevletError] = []
        self.is_secret = False  # lists and watches are always refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        self.gets.append(name)
        if self.no_get:
            raise self.no_get.pop(0)
        return await self._store.get(resource, name, namespace)

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        if resource.version in self.unserved:
            raise NotFound("404 page not found")
        if self.is_secret:
            raise Forbidden("a node may only get")
        return await self._store.list(resource, namespace, options)

    def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        assert resource.version not in self.unserved
        self.watches.append(options.field_selector)
        return self._watching(resource, namespace, options)

    @asynccontextmanager
    async def _watching(
        self, resource: Resource, namespace: str, options: WatchOptions
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        if self.no_watch:
            raise self.no_watch.pop(0)
        async with self._store.watch(resource, namespace, options) as events:
            yield events


class Waiting:
    """Pods that wait, and which of them were woken."""

    def __init__(self, store: Store, settings: Settings = STEADY) -> None:
        self.store = store
        self.cluster = Spied(store)
        self.clock = FakeClock()
        self.settings = settings
        self.woken: list[PodUID] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ClaimWatch]:
        watch = ClaimWatch(self.cluster, self.woken.append, self.clock, self.settings)
        async with running(watch.run):
            yield watch

    async def woke(self) -> list[PodUID]:
        """Return the pods that were woken since the last call."""
        await self.clock.advance(0)
        woken, self.woken[:] = list(self.woken), []
        return woken

    async def create(self, name: str) -> None:
        await self.store.create(RESOURCE_CLAIMS, claim(name), "default")

    async def change(self, name: str, value: str = "x") -> None:
        patch = MergePatch({"metadata": {"labels": {"changed": value}}})
        await self.store.patch(RESOURCE_CLAIMS, name, patch, "default")


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


@pytest.fixture
def waiting(store: Store) -> Waiting:
    return Waiting(store)


async def test_a_pod_is_woken_when_its_claim_is_created_changed_or_deleted(waiting: Waiting) -> None:
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]  # the absence
        await waiting.create("gpu")
        assert await waiting.woke() == [A]
        await waiting.change("gpu")
        assert await waiting.woke() == [A]
        await waiting.store.delete(RESOURCE_CLAIMS, "gpu", "default")
        assert await waiting.woke() == [A]
        assert await waiting.woke() == []


async def test_a_change_between_the_read_and_the_watch_is_not_missed(waiting: Waiting) -> None:
    await waiting.create("gpu")
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]
        watch.watch(B, [GPU])  # it may have read the claim before the watch began
        assert await waiting.woke() == [B]


async def test_a_pod_that_retries_after_each_wake_does_not_loop(waiting: Waiting) -> None:
    await waiting.create("gpu")
    async with waiting.running() as watch:
        for expected in ([A], [], []):
            watch.watch(A, [GPU])
            assert await waiting.woke() == expected
            watch.watch(A, [])
        await waiting.change("gpu")
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]


async def test_pods_that_wait_for_the_same_claim_share_a_watch(waiting: Waiting) -> None:
    await waiting.create("gpu")
    async with waiting.running() as watch:
        watch.watch(A, [GPU, GPU])
        watch.watch(B, (GPU,))
        assert sorted(await waiting.woke()) == [A, B]
        watch.watch(A, {GPU})
        assert await waiting.woke() == []
        assert waiting.cluster.watches == ["metadata.name=gpu"]
        await waiting.change("gpu")
        assert await waiting.woke() == [A, B]


async def test_a_new_list_of_claims_replaces_the_previous_one(waiting: Waiting) -> None:
    await waiting.create("gpu")
    await waiting.create("nic")
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        await waiting.woke()
        watch.watch(A, [NIC])
        await waiting.woke()
        assert watch.watched == 1
        await waiting.change("gpu")
        assert await waiting.woke() == []
        await waiting.change("nic")
        assert await waiting.woke() == [A]
        watch.watch(A, [])
        await waiting.woke()
        assert watch.watched == 0
        await waiting.change("nic", "y")
        assert await waiting.woke() == []


async def test_claims_of_the_same_name_in_two_namespaces_are_different(waiting: Waiting) -> None:
    await waiting.create("gpu")
    async with waiting.running() as watch:
        watch.watch(A, [ClaimKey("kube-system", ClaimName("gpu"))])
        assert await waiting.woke() == [A]
        await waiting.change("gpu")
        assert await waiting.woke() == []


async def test_claims_that_were_added_before_the_start_are_watched(waiting: Waiting) -> None:
    watch = ClaimWatch(waiting.cluster, waiting.woken.append, waiting.clock, STEADY)
    watch.watch(A, [GPU])
    async with running(watch.run):
        assert await waiting.woke() == [A]
    watch.watch(A, [NIC])  # too late, but not an error
    assert await waiting.woke() == []


async def test_claims_are_polled_if_the_cluster_refuses_watches(waiting: Waiting) -> None:
    waiting.cluster.is_secret = True
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]
        await waiting.clock.advance(5)
        assert await waiting.woke() == []
        await waiting.create("gpu")
        await waiting.clock.advance(5)
        assert await waiting.woke() == [A]
        await waiting.clock.advance(5)
        assert await waiting.woke() == []
        await waiting.change("gpu")
        await waiting.clock.advance(5)
        assert await waiting.woke() == [A]
        await waiting.store.delete(RESOURCE_CLAIMS, "gpu", "default")
        await waiting.create("gpu")
        await waiting.clock.advance(5)
        assert await waiting.woke() == [A]
        assert waiting.cluster.watches == []


async def test_watches_are_retried_some_time_after_a_refusal(waiting: Waiting) -> None:
    waiting.cluster.is_secret = True
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]
        await waiting.clock.advance(299)
        assert watch.watched == 0
        waiting.cluster.is_secret = False
        await waiting.clock.advance(10)
        assert watch.watched == 1


async def test_a_claim_that_may_not_be_read_is_retried(waiting: Waiting) -> None:
    await waiting.create("gpu")
    waiting.cluster.is_secret = True
    waiting.cluster.no_get = [Forbidden("no pod of this node uses it")] * 2
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == []
        await waiting.clock.advance(3)
        assert await waiting.woke() == [A]


async def test_claims_beyond_the_maximum_of_watches_are_polled(store: Store) -> None:
    waiting = Waiting(store, Settings(watches=2))
    async with waiting.running() as watch:
        watch.watch(A, [key("c0"), key("c1"), key("c2")])
        assert len(await waiting.woke()) == 3
        assert watch.watched == 2
        assert len(waiting.cluster.gets) == 1
        for name in ("c0", "c1", "c2"):
            await waiting.create(name)
        await waiting.clock.advance(5)
        assert len(await waiting.woke()) == 3
        watch.watch(A, [key("c1"), key("c2")])  # which makes room
        await waiting.clock.advance(5)
        assert watch.watched == 2
        asked = len(waiting.cluster.gets)
        await waiting.clock.advance(50)
        assert len(waiting.cluster.gets) == asked


@pytest.mark.parametrize("error", [Expired("too old"), Unavailable("down"), DevletError("nonsense")])
async def test_a_failed_watch_is_reopened_without_missing_a_change(waiting: Waiting, error: DevletError) -> None:
    waiting.cluster.no_watch = [error]
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]
        await waiting.create("gpu")
        await waiting.clock.advance(1)
        assert await waiting.woke() == [A]
        await waiting.change("gpu")
        assert await waiting.woke() == [A]


async def test_a_watch_that_ended_is_reopened_without_missing_a_change(waiting: Waiting) -> None:
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]
        waiting.store.end_watches()
        await waiting.woke()
        await waiting.create("gpu")
        assert await waiting.woke() == []
        await waiting.clock.advance(1)
        assert await waiting.woke() == [A]
        assert len(waiting.cluster.watches) == 2


async def test_an_unavailable_cluster_is_retried_with_back_off(waiting: Waiting) -> None:
    waiting.cluster.no_watch = [Unavailable("down")] * 1000
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]
        await waiting.clock.advance(31 + 20 * 30)
        assert await waiting.woke() == []
        assert len(waiting.cluster.watches) == 26


@pytest.mark.spec("DN-11.27")
async def test_an_older_server_is_watched_in_its_own_api_version(waiting: Waiting) -> None:
    waiting.cluster.unserved = ("v1", "v1beta2")
    async with waiting.running() as watch:
        watch.watch(A, [GPU])
        assert await waiting.woke() == [A]
        await waiting.create("gpu")
        assert await waiting.woke() == [A]


async def test_the_number_of_remembered_pods_is_limited(store: Store) -> None:
    waiting = Waiting(store, Settings(remembered=1))
    await waiting.create("gpu")
    async with waiting.running() as watch:
        for pod in (A, B):
            watch.watch(pod, [GPU])
            assert await waiting.woke() == [pod]
            watch.watch(pod, [])
        for pod, woken in ((B, []), (A, [A])):
            watch.watch(pod, [GPU])
            assert await waiting.woke() == woken


async def test_the_number_of_concurrent_polls_is_limited(store: Store) -> None:
    waiting = Waiting(store, Settings(watches=0, polls=2))
    async with waiting.running() as watch:
        watch.watch(A, [key(f"c{number}") for number in range(20)])
        with deadline():
            while len(waiting.cluster.gets) < 20:
                await waiting.woke()
