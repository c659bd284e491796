"""Writes to claims, alone and among other writers."""

from collections.abc import Awaitable, Callable

import pytest

from devlet.cluster.client import MergePatch
from devlet.control.claim_writes import ClaimWriter
from devlet.control.reservations import FULL, refusal_of
from devlet.errors import Conflict, Forbidden, NotFound, Unavailable
from devlet.kit.clock import SystemClock
from devlet.objects import kinds
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ConsumerReference, ResourceClaim, ResourceClaimStatus
from devlet.objects.types.pod import Pod
from tests.support.workloads import claim, pod
from tests.unit.control.conftest import CLAIM_STATUS, World, Write, allocation_on, raises

pytestmark = pytest.mark.anyio

ALLOCATION = allocation_on("n1")
PROTECTION = "resource.kubernetes.io/delete-protection"


class Fixture:
    """One claim, two pods and a writer."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.decoded: list[ResourceClaim] = []  # all that the cluster returned
        self.writer = ClaimWriter(world.cluster, SystemClock(), 3, self.decode)

    def decode(self, document: Document) -> ResourceClaim:
        self.decoded.append(view(ResourceClaim, document))
        return self.decoded[-1]

    async def claim(self) -> ResourceClaim:
        return view(ResourceClaim, await self.world.claim("c"))

    async def pod(self, name: str) -> Pod:
        return view(Pod, await self.world.pod(name))

    async def users(self) -> list[str]:
        return [each.name for each in (await self.claim()).status.reserved_for]


@pytest.fixture
async def one(world: World) -> Fixture:
    await world.add(claim("c"), pod("a"), pod("b"))
    return Fixture(world)


@pytest.mark.spec("DA-5.7f")
async def test_devices_finalizer_and_reservation_are_written_with_the_time(one: Fixture) -> None:
    stored = await one.writer.reserve(await one.claim(), await one.pod("a"), ALLOCATION)
    assert stored == await one.claim() == one.decoded[-1]
    assert stored.metadata.finalizers == (PROTECTION,)
    assert stored.status.allocation and stored.status.allocation.allocation_timestamp
    assert await one.users() == ["a"]
    assert one.world.cluster.writes == ["patch resourceclaims", CLAIM_STATUS]


async def test_a_claim_that_lost_its_finalizer_in_the_meantime_gets_it_again(one: Fixture) -> None:
    """The claim controller releases a claim in two writes: it may remove the finalizer after a new allocation."""
    await one.writer.reserve(await one.claim(), await one.pod("b"), ALLOCATION)
    await one.writer.deallocate(await one.claim(), await one.pod("b"))
    old = await one.claim()
    patch = MergePatch({"metadata": {"finalizers": None}})
    await one.world.store.patch(kinds.RESOURCE_CLAIMS, "c", patch, "default")
    stored = await one.writer.reserve(old, await one.pod("a"), ALLOCATION)
    assert stored.metadata.finalizers == (PROTECTION,) and await one.users() == ["a"]


async def test_reserving_for_a_second_pod_keeps_the_devices(one: Fixture) -> None:
    await one.writer.reserve(await one.claim(), await one.pod("a"), ALLOCATION)
    before = (await one.claim()).status.allocation
    await one.writer.reserve(await one.claim(), await one.pod("b"))
    assert sorted(await one.users()) == ["a", "b"] and (await one.claim()).status.allocation == before


async def test_an_existing_reservation_is_not_written_again(one: Fixture) -> None:
    a = await one.pod("a")
    await one.writer.reserve(await one.claim(), a, ALLOCATION)
    one.world.cluster.writes.clear()
    assert await one.writer.reserve(await one.claim(), a) == await one.claim() and not one.world.cluster.writes


async def test_after_a_conflict_the_claim_is_read_again(one: Fixture) -> None:
    old = await one.claim()
    await one.writer.reserve(old, await one.pod("a"), ALLOCATION)
    await one.writer.reserve(await one.claim(), await one.pod("b"))
    assert await one.writer.give_back(old, await one.pod("b"), deallocate=False) is old  # `old` shows no reservation
    one.decoded.clear()
    with pytest.raises(Conflict, match="allocated by another scheduler"):
        await one.writer.reserve(old, await one.pod("b"), allocation_on("n2"))
    assert [each.name for each in one.decoded] == ["c"]


async def test_a_deallocated_claim_cannot_be_reserved(one: Fixture) -> None:
    await one.writer.reserve(await one.claim(), await one.pod("a"), ALLOCATION)
    old = await one.claim()
    await one.writer.deallocate(old, await one.pod("a"))
    with pytest.raises(Conflict, match="was deallocated"):
        await one.writer.reserve(old, await one.pod("b"))


async def test_a_claim_that_is_being_deleted_cannot_be_reserved(one: Fixture) -> None:
    await one.writer.reserve(await one.claim(), await one.pod("a"), ALLOCATION)
    await one.world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
    with pytest.raises(Conflict, match="is being deleted"):
        await one.writer.reserve(await one.claim(), await one.pod("b"))


async def test_a_new_claim_of_the_same_name_is_a_different_one(one: Fixture) -> None:
    old = await one.claim()
    await one.world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
    await one.world.add(claim("c"))
    with pytest.raises(NotFound, match="replaced by another"):
        await one.writer.reserve(old, await one.pod("a"), ALLOCATION)


async def test_the_last_consumer_frees_the_devices_and_removes_their_status(one: Fixture) -> None:
    a, b = await one.pod("a"), await one.pod("b")
    await one.writer.reserve(await one.claim(), a, ALLOCATION)
    await one.writer.reserve(await one.claim(), b)
    await one.writer.give_back(await one.claim(), a, deallocate=True)
    assert await one.users() == ["b"] and (await one.claim()).results
    await one.world.status("c", {"devices": [{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]})
    await one.writer.give_back(await one.claim(), b, deallocate=True)
    assert not (await one.world.claim("c")).get("status")


async def test_giving_back_without_a_reservation_frees_nothing(one: Fixture) -> None:
    await one.world.status("c", {"allocation": ALLOCATION})
    before = await one.claim()
    assert await one.writer.give_back(before, await one.pod("a"), deallocate=True) is before
    assert (await one.claim()).results


async def test_a_claim_in_use_by_another_pod_is_not_deallocated(one: Fixture) -> None:
    a, b = await one.pod("a"), await one.pod("b")
    before = await one.claim()
    assert await one.writer.deallocate(before, a) is before
    await one.writer.reserve(await one.claim(), a, ALLOCATION)
    with pytest.raises(Conflict, match="in use by another consumer"):
        await one.writer.deallocate(await one.claim(), b)


async def test_after_a_lost_answer_the_claim_is_read_until_its_state_is_known(one: Fixture) -> None:
    one.world.cluster.after = raises(Unavailable("connection lost"), CLAIM_STATUS)
    one.world.cluster.reading = raises(Unavailable("no connection"), "get resourceclaims", times=2)
    stored = await one.writer.reserve(await one.claim(), await one.pod("a"), ALLOCATION)
    assert await one.users() == ["a"] and stored is one.decoded[-1] and stored.results


async def test_after_a_lost_answer_the_finalizer_is_not_written_again(one: Fixture) -> None:
    one.world.cluster.after = raises(Unavailable("connection lost"), "patch resourceclaims")
    await one.writer.reserve(await one.claim(), await one.pod("a"), ALLOCATION)
    assert one.world.cluster.writes == ["patch resourceclaims", CLAIM_STATUS]


@pytest.mark.parametrize("error", [Unavailable("not now"), Forbidden("not you")])
async def test_an_error_of_the_write_is_raised(one: Fixture, error: Exception) -> None:
    one.world.cluster.before = raises(error, CLAIM_STATUS, times=10)
    with pytest.raises(type(error), match="not"):
        await one.writer.reserve(await one.claim(), await one.pod("a"), ALLOCATION)


@pytest.mark.parametrize("what", [CLAIM_STATUS, "patch resourceclaims"])
async def test_a_writer_gives_up_after_too_many_conflicts(one: Fixture, what: str) -> None:
    async def label() -> None:
        value = str(len(one.world.cluster.writes))
        patch = MergePatch({"metadata": {"labels": {"n": value}}})
        await one.world.store.patch(kinds.RESOURCE_CLAIMS, "c", patch, "default")

    one.world.cluster.before = whenever(what, label)
    with pytest.raises(Conflict, match="keeps being modified concurrently"):
        await one.writer.reserve(await one.claim(), await one.pod("a"), ALLOCATION)


def whenever(what: str, act: Callable[[], Awaitable[None]]) -> Callable[[Write], Awaitable[None]]:
    async def hook(write: Write) -> None:
        if write.what == what:
            await act()

    return hook


async def test_a_claim_has_at_most_256_consumers(one: Fixture) -> None:
    found = await one.claim()
    many = tuple(ConsumerReference(resource="pods", name=f"p{i}", uid=f"u{i}") for i in range(256))
    allocation = view(ResourceClaim, {**claim("c"), "status": {"allocation": ALLOCATION}}).status.allocation
    full = ResourceClaim(
        metadata=found.metadata, spec=found.spec, status=ResourceClaimStatus(allocation=allocation, reserved_for=many)
    )
    assert refusal_of(full) == FULL.format("c") and refusal_of(found) == ""
    with pytest.raises(Conflict, match=FULL.format("c")):
        await one.writer.reserve(full, await one.pod("a"))
