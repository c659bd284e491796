"""Many pods reserve one claim while other clients write to it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from devlet.cluster.client import Cluster, MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.store.store import open_store
from devlet.control.claim_writes import ClaimWriter
from devlet.control.reservations import FULL, consumer_document
from devlet.control.scheduler.settings import ReportTimes, Settings
from devlet.daemon.config import Config
from devlet.daemon.kube_api import serving
from devlet.errors import Conflict, DevletError, NotFound, Unavailable
from devlet.kit.clock import SystemClock
from devlet.objects import kinds
from devlet.objects.documents import view
from devlet.objects.types.claim import ConsumerReference, ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.testing.waiting import deadline
from tests.support.workloads import claim, device_class, node, pod, slice_of
from tests.unit.control.conftest import CLAIM_STATUS, World, Write, allocation_on, raises

pytestmark = pytest.mark.anyio

ALLOCATION = allocation_on("n1")


class Crowd:
    """A claim with devices, and pods that want it: `reserve` lets all try at once, and returns the error of each."""

    def __init__(self, world: World, pods: list[Pod]) -> None:
        self.world = world
        self.pods = pods
        self.writer = ClaimWriter(world.cluster, SystemClock(), 3)

    async def claim(self) -> ResourceClaim:
        return view(ResourceClaim, await self.world.claim("c"))

    async def users(self) -> set[str]:
        return {each.name for each in (await self.claim()).status.reserved_for}

    async def reserve(self, claim: ResourceClaim | None = None) -> dict[str, str]:
        known = claim or await self.claim()
        said: dict[str, str] = {}

        async def one(pod: Pod) -> None:
            try:
                await self.writer.reserve(known, pod)
                said[pod.name] = ""
            except DevletError as e:
                said[pod.name] = str(e)

        with deadline():
            async with anyio.create_task_group() as tasks:
                for each in self.pods:
                    tasks.start_soon(one, each)
        return said


async def crowd(world: World, number: int) -> Crowd:
    names = [f"p{index}" for index in range(number)]
    await world.add(claim("c"), *(pod(name) for name in names))
    await world.status("c", {"allocation": ALLOCATION})
    return Crowd(world, [view(Pod, await world.pod(name)) for name in names])


async def label(world: World) -> None:
    """Write to the claim as another client."""
    patch = MergePatch({"metadata": {"labels": {"n": str(world.store.version)}}})
    await world.store.patch(kinds.RESOURCE_CLAIMS, "c", patch, "default")


@pytest.fixture
async def three(world: World) -> Crowd:
    return await crowd(world, 3)


async def test_200_pods_share_two_writes_without_a_conflict(world: World) -> None:
    many = await crowd(world, 200)

    async def disturb(_: Write) -> None:
        await label(world)

    world.cluster.before = disturb
    assert set((await many.reserve()).values()) == {""}
    assert len(await many.users()) == 200
    assert world.cluster.writes == [CLAIM_STATUS] * 2


async def test_a_claim_is_reserved_for_256_pods_and_the_others_get_an_error(world: World) -> None:
    few = await crowd(world, 10)
    others = [{"resource": "pods", "name": f"o{i}", "uid": f"o{i}"} for i in range(250)]
    known = await few.claim()
    await world.status("c", {"reservedFor": others})
    said = await few.reserve(known)
    assert sorted(said.values()) == [""] * 6 + [FULL.format("c")] * 4
    assert len(await few.users()) == 256
    assert set((await few.reserve()).values()) <= {"", FULL.format("c")}


async def test_a_pod_is_removed_again_if_the_claim_was_reallocated(three: Crowd) -> None:
    known = await three.claim()
    await three.world.status("c", {"allocation": None})
    await three.world.status("c", {"allocation": allocation_on("n2")})
    assert set((await three.reserve(known)).values()) == {"claim c was reallocated"}
    assert await three.users() == set()
    assert set((await three.reserve()).values()) == {""}


async def test_a_deallocated_claim_that_is_being_deleted_cannot_be_reserved(three: Crowd) -> None:
    known = await three.claim()
    await three.world.store.patch(
        kinds.RESOURCE_CLAIMS, "c", MergePatch({"metadata": {"finalizers": ["x.io/y"]}}), "default"
    )
    await three.world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
    assert set((await three.reserve(known)).values()) == {"claim c is being deleted"}
    await three.world.status("c", {"allocation": None})
    assert set((await three.reserve(known)).values()) == {"claim c is being deleted"}


async def test_a_claim_without_devices_cannot_be_reserved(three: Crowd) -> None:
    known = await three.claim()
    await three.world.status("c", {"allocation": None})
    assert set((await three.reserve(known)).values()) == {"claim c was deallocated"}


async def test_a_new_claim_of_the_same_name_is_a_different_one(three: Crowd) -> None:
    known = await three.claim()
    await three.world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
    await three.world.add(claim("c"))
    with pytest.raises(NotFound, match="replaced by another"):
        await three.writer.reserve(known, three.pods[0])


async def test_after_a_lost_answer_the_claim_is_read_until_its_state_is_known(three: Crowd) -> None:
    three.world.cluster.after = raises(Unavailable("connection lost"), CLAIM_STATUS)
    three.world.cluster.reading = raises(Unavailable("no connection"), "get resourceclaims", times=2)
    assert set((await three.reserve()).values()) == {""}
    assert await three.users() == {"p0", "p1", "p2"}


async def test_a_cancelled_writer_does_not_block_the_pods_that_share_its_write(three: Crowd) -> None:
    began, go_on = anyio.Event(), anyio.Event()

    async def wait(_: Write) -> None:
        began.set()
        await go_on.wait()

    three.world.cluster.before = wait
    known, (first, second, third) = await three.claim(), three.pods
    stopped = anyio.CancelScope()

    async def leave() -> None:
        with stopped:
            await three.writer.reserve(known, second)

    async def share() -> None:
        with pytest.raises(Conflict, match="the write was interrupted"):
            await three.writer.reserve(known, third)
        go_on.set()

    with deadline():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(three.writer.reserve, known, first)
            await began.wait()
            tasks.start_soon(leave)
            tasks.start_soon(share)
            await anyio.wait_all_tasks_blocked()
            stopped.cancel()
    assert await three.users() == {"p0"}
    assert set((await three.reserve()).values()) == {""}


@pytest.fixture(params=["embedded", "over HTTP"])
async def reached(request: pytest.FixtureRequest, root: Path, anyio_backend: str) -> AsyncIterator[World]:
    """A cluster whose scheduler reaches it in one of the two ways."""
    clock, settings = SystemClock(), Settings(reports=ReportTimes(0.05))
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(root / "cluster.db", clock=clock))
        remote: Cluster | None = None
        if request.param == "over HTTP":
            await stack.enter_async_context(serving(store, Config(root=root, node_name="n1"), clock))
            remote = await stack.enter_async_context(connected(kubeconfig.connection([root / "kubeconfig"])))
        yield World(store, settings, remote)


async def test_200_pods_on_one_claim_are_all_scheduled_without_a_conflict(reached: World) -> None:
    world = reached
    names = [f"p{index}" for index in range(200)]
    await world.add(node("n1", pods="300"), device_class(), slice_of("n1", 1), claim("shared"))
    await world.add(*(pod(name, claim="shared") for name in names))
    async with world.scheduling():
        assert set((await world.bound(*names)).values()) == {"n1"}
        await world.settled()
    users = view(ResourceClaim, await world.claim("shared")).status.reserved_for
    assert {each.name for each in users} == set(names)
    assert world.cluster.writes.count(CLAIM_STATUS) <= 200  # no pod twice; how many share a write varies
    reported = {each["message"] for each in await world.events("FailedScheduling")}
    assert reported <= {"resource claim default/shared is in the process of being allocated"}  # by the first pod


def test_consumers_are_written_as_kubernetes_spells_them() -> None:
    group = ConsumerReference(api_group="x.k8s.io", resource="groups", name="g", uid="1")
    assert consumer_document(group) == {"apiGroup": "x.k8s.io", "resource": "groups", "name": "g", "uid": "1"}
    pod = ConsumerReference(resource="pods", name="p", uid="2")
    assert consumer_document(pod) == {"resource": "pods", "name": "p", "uid": "2"}
