"""Writes to claims, alone and among others."""

from collections.abc import Awaitable, Callable

import pytest

from devlet.cluster.client import MergePatch
from devlet.control.claim_writes import ClaimWriter
from devlet.control.reservations import FULL, is_full
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


class Desk:
    """One claim, two pods and a writer."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seen: list[Document] = []
        self.writer = ClaimWriter(world.cluster, SystemClock(), 3, self.seen.append)

    async def claim(self) -> ResourceClaim:
        return view(ResourceClaim, await self.world.claim("c"))

    async def pod(self, name: str) -> Pod:
        return view(Pod, await self.world.pod(name))

    async def users(self) -> list[str]:
        return [each.name for each in (await self.claim()).status.reserved_for]


@pytest.fixture
async def desk(world: World) -> Desk:
    await world.add(claim("c"), pod("a"), pod("b"))
    return Desk(world)


@pytest.mark.spec("DA-5.7f")
async def test_devices_finalizer_and_reservation_are_written_with_the_time(desk: Desk) -> None:
    answer = await desk.writer.allocate(await desk.claim(), await desk.pod("a"), ALLOCATION)
    assert answer == await desk.world.claim("c")
    assert answer["metadata"]["finalizers"] == [PROTECTION]
    assert answer["status"]["allocation"]["allocationTimestamp"]
    assert await desk.users() == ["a"]
    assert desk.world.cluster.writes == ["patch resourceclaims", CLAIM_STATUS]


async def test_a_claim_that_lost_its_finalizer_meanwhile_gets_it_again(desk: Desk) -> None:
    """As when the last who used it has just gone: it is released in two writes."""
    await desk.writer.allocate(await desk.claim(), await desk.pod("b"), ALLOCATION)
    await desk.writer.deallocate(await desk.claim(), await desk.pod("b"))
    old = await desk.claim()
    patch = MergePatch({"metadata": {"finalizers": None}})
    await desk.world.store.patch(kinds.RESOURCE_CLAIMS, "c", patch, "default")
    answer = await desk.writer.allocate(old, await desk.pod("a"), ALLOCATION)
    assert answer and answer["metadata"]["finalizers"] == [PROTECTION] and await desk.users() == ["a"]


async def test_a_second_pod_is_added_without_a_change_of_devices(desk: Desk) -> None:
    await desk.writer.allocate(await desk.claim(), await desk.pod("a"), ALLOCATION)
    before = (await desk.claim()).status.allocation
    await desk.writer.join(await desk.claim(), await desk.pod("b"))
    assert sorted(await desk.users()) == ["a", "b"] and (await desk.claim()).status.allocation == before


async def test_who_has_it_already_is_not_written(desk: Desk) -> None:
    a = await desk.pod("a")
    await desk.writer.allocate(await desk.claim(), a, ALLOCATION)
    desk.world.cluster.writes.clear()
    assert await desk.writer.join(await desk.claim(), a) is None and not desk.world.cluster.writes


async def test_a_stale_view_is_read_again_and_told(desk: Desk) -> None:
    old = await desk.claim()
    await desk.writer.allocate(old, await desk.pod("a"), ALLOCATION)
    await desk.writer.join(await desk.claim(), await desk.pod("b"))
    assert await desk.writer.give_back(old, await desk.pod("b"), deallocate=False) is None  # as far as `old` knows
    with pytest.raises(Conflict, match="allocated by another scheduler"):
        await desk.writer.allocate(old, await desk.pod("b"), allocation_on("n2"))
    assert [each["metadata"]["name"] for each in desk.seen] == ["c"]


async def test_what_was_deallocated_cannot_be_shared(desk: Desk) -> None:
    await desk.writer.allocate(await desk.claim(), await desk.pod("a"), ALLOCATION)
    old = await desk.claim()
    await desk.writer.deallocate(old, await desk.pod("a"))
    with pytest.raises(Conflict, match="was deallocated"):
        await desk.writer.join(old, await desk.pod("b"))


async def test_what_is_being_deleted_cannot_be_used(desk: Desk) -> None:
    await desk.writer.allocate(await desk.claim(), await desk.pod("a"), ALLOCATION)
    await desk.world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
    with pytest.raises(Conflict, match="is being deleted"):
        await desk.writer.join(await desk.claim(), await desk.pod("b"))


async def test_a_claim_of_the_same_name_is_another(desk: Desk) -> None:
    old = await desk.claim()
    await desk.world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
    await desk.world.add(claim("c"))
    with pytest.raises(NotFound, match="replaced by another"):
        await desk.writer.allocate(old, await desk.pod("a"), ALLOCATION)


async def test_the_last_user_gives_the_devices_back_and_what_was_said_about_them(desk: Desk) -> None:
    a, b = await desk.pod("a"), await desk.pod("b")
    await desk.writer.allocate(await desk.claim(), a, ALLOCATION)
    await desk.writer.join(await desk.claim(), b)
    await desk.writer.give_back(await desk.claim(), a, deallocate=True)
    assert await desk.users() == ["b"] and (await desk.claim()).results
    await desk.world.status("c", {"devices": [{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]})
    await desk.writer.give_back(await desk.claim(), b, deallocate=True)
    assert not (await desk.world.claim("c")).get("status")


async def test_what_somebody_else_has_by_now_is_not_given_back(desk: Desk) -> None:
    await desk.world.status("c", {"allocation": ALLOCATION})
    assert await desk.writer.give_back(await desk.claim(), await desk.pod("a"), deallocate=True) is None
    assert (await desk.claim()).results


async def test_what_others_use_is_not_deallocated(desk: Desk) -> None:
    a, b = await desk.pod("a"), await desk.pod("b")
    assert await desk.writer.deallocate(await desk.claim(), a) is None
    await desk.writer.allocate(await desk.claim(), a, ALLOCATION)
    with pytest.raises(Conflict, match="in use by another consumer"):
        await desk.writer.deallocate(await desk.claim(), b)


async def test_a_lost_answer_is_found_again(desk: Desk) -> None:
    desk.world.cluster.after = raises(Unavailable("connection lost"), CLAIM_STATUS)
    desk.world.cluster.reading = raises(Unavailable("no connection"), "get resourceclaims", times=2)
    assert await desk.writer.allocate(await desk.claim(), await desk.pod("a"), ALLOCATION) is None
    assert await desk.users() == ["a"] and desk.seen[-1]["status"]["allocation"]


async def test_a_lost_finalizer_is_found_again(desk: Desk) -> None:
    desk.world.cluster.after = raises(Unavailable("connection lost"), "patch resourceclaims")
    await desk.writer.allocate(await desk.claim(), await desk.pod("a"), ALLOCATION)
    assert desk.world.cluster.writes == ["patch resourceclaims", CLAIM_STATUS]


@pytest.mark.parametrize("error", [Unavailable("not now"), Forbidden("not you")])
async def test_what_cannot_be_written_is_said(desk: Desk, error: Exception) -> None:
    desk.world.cluster.before = raises(error, CLAIM_STATUS, times=10)
    with pytest.raises(type(error), match="not"):
        await desk.writer.allocate(await desk.claim(), await desk.pod("a"), ALLOCATION)


@pytest.mark.parametrize("what", [CLAIM_STATUS, "patch resourceclaims"])
async def test_who_is_never_the_first_gives_up(desk: Desk, what: str) -> None:
    async def label() -> None:
        value = str(len(desk.world.cluster.writes))
        patch = MergePatch({"metadata": {"labels": {"n": value}}})
        await desk.world.store.patch(kinds.RESOURCE_CLAIMS, "c", patch, "default")

    desk.world.cluster.before = whenever(what, label)
    with pytest.raises(Conflict, match="keeps being modified concurrently"):
        await desk.writer.allocate(await desk.claim(), await desk.pod("a"), ALLOCATION)


def whenever(what: str, act: Callable[[], Awaitable[None]]) -> Callable[[Write], Awaitable[None]]:
    async def hook(write: Write) -> None:
        if write.what == what:
            await act()

    return hook


async def test_no_more_than_256_pods_use_a_claim(desk: Desk) -> None:
    found = await desk.claim()
    many = tuple(ConsumerReference(resource="pods", name=f"p{i}", uid=f"u{i}") for i in range(256))
    allocation = view(ResourceClaim, {**claim("c"), "status": {"allocation": ALLOCATION}}).status.allocation
    full = ResourceClaim(
        metadata=found.metadata, spec=found.spec, status=ResourceClaimStatus(allocation=allocation, reserved_for=many)
    )
    assert is_full(full) and not is_full(found)
    with pytest.raises(Conflict, match=FULL.format("c")):
        await desk.writer.join(full, await desk.pod("a"))
