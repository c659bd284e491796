"""Claims as the scheduler knows them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.informer import Informer
from devlet.cluster.store.store import Store
from devlet.control.scheduler.claim_book import ClaimBook
from devlet.control.scheduler.devices import Devices
from devlet.kit.parts import running
from devlet.objects.documents import Document, view
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.slice import ResourceSlice
from devlet.testing.waiting import until
from tests.support.workloads import DRIVER, claim, slice_of
from tests.unit.control.conftest import World
from tests.unit.control.scheduler.test_devices import given

pytestmark = pytest.mark.anyio

KEY = ("default", "c")
RESULT = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
ALLOCATION: Document = {"allocation": {"devices": {"results": [RESULT]}}}


class Fixture:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.claims: Informer[ResourceClaim] = Informer(
            store, RESOURCE_CLAIMS, lambda found: view(ResourceClaim, found)
        )
        self.devices = Devices()
        self.devices.see_slice(None, view(ResourceSlice, slice_of("n1", 1)))
        self.freed = 0
        self.book = ClaimBook(self.claims, self.devices, self._freed)

    def _freed(self) -> None:
        self.freed += 1

    @property
    def is_taken(self) -> bool:
        return self.devices.allocator.inventory.find(given().identity)[0].is_taken

    async def write(self, status: Document) -> Document:
        return await self.store.patch(
            RESOURCE_CLAIMS, "c", MergePatch({"status": status}), "default", subresource="status"
        )

    async def until_taken(self, taken: bool) -> None:
        async def look() -> bool:
            return self.is_taken

        await until(look, lambda found: found == taken)


@asynccontextmanager
async def fixture(world: World) -> AsyncIterator[Fixture]:
    found = Fixture(world.store)
    await world.add(claim("c"))
    async with running(found.claims.run):
        yield found


async def test_the_devices_of_an_allocated_claim_are_held(world: World) -> None:
    async with fixture(world) as at:
        assert not at.is_taken
        await at.write(ALLOCATION)
        await at.until_taken(True)
        await at.write({"allocation": None})
        await at.until_taken(False)
        assert at.freed == 1


async def test_the_devices_of_a_claim_in_flight_are_held_until_it_is_dropped(world: World) -> None:
    async with fixture(world) as at:
        results = [given()]
        at.book.reserve(KEY, results)
        assert at.is_taken and at.book.is_in_flight(KEY)
        at.book.drop(KEY, results)
        held = at.is_taken
        assert (held, at.book.is_in_flight(KEY), at.freed) == (False, False, 1)


async def test_an_answer_counts_before_the_informer_has_it(world: World) -> None:
    async with fixture(world) as at:
        results = [given()]
        at.book.reserve(KEY, results)
        answer = await at.write(ALLOCATION)
        assert at.book.read(answer).status.allocation is not None
        at.book.drop(KEY, results)
        assert at.is_taken and not at.book.is_in_flight(KEY)
        known = at.book.get(*KEY)
        assert known is not None and known.status.allocation is not None


async def test_changes_older_than_an_answer_are_ignored(world: World) -> None:
    async with fixture(world) as at:
        await at.write(ALLOCATION)
        at.book.read(await at.write({"allocation": None}))
        assert not at.is_taken
        version = at.book.get(*KEY)
        assert version is not None

        async def seen() -> str:
            found = at.claims.get("c", "default")
            return found.metadata.resource_version if found else ""

        await until(seen, lambda found: found == version.metadata.resource_version)
        assert not at.is_taken


async def test_a_decision_is_not_dropped_by_an_earlier_equal_one(world: World) -> None:
    async with fixture(world) as at:
        before, now = [given()], [given()]
        at.book.reserve(KEY, before)
        at.book.drop(KEY, before)
        at.book.reserve(KEY, now)
        at.book.drop(KEY, before)
        at.book.read(await at.write({"allocation": None}))
        assert at.is_taken and at.book.is_in_flight(KEY)


async def test_a_late_answer_does_not_replace_a_newer_one(world: World) -> None:
    async with fixture(world) as at:
        late, newer = await at.write({"allocation": None}), await at.write(ALLOCATION)
        at.book.read(newer)
        at.book.read(late)
        assert at.is_taken


async def test_a_deleted_claim_holds_no_devices(world: World) -> None:
    async with fixture(world) as at:
        await at.write(ALLOCATION)
        await at.until_taken(True)
        await at.store.delete(RESOURCE_CLAIMS, "c", "default")
        await at.until_taken(False)
        assert at.book.get(*KEY) is None
