from pathlib import Path

import anyio
import pytest

from devlet.errors import Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.node.devices.checkpoint import CheckpointContent
from devlet.node.devices.inventory import Inventory
from devlet.node.devices.releases import Hooks, NoHooks, Release, Releaser, releases
from devlet.node.reports import Report
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins.devices import Grant
from devlet.state.checkpoint_file import CheckpointFile, GroupSaver

pytestmark = pytest.mark.anyio

GPU, NIC = ResourceName("vendor.com/gpu"), ResourceName("vendor.com/nic")
U1, U2 = PodUID("u1"), PodUID("u2")
INIT, MAIN = ContainerName("init"), ContainerName("main")


def allocation(
    *ids: str, pod: PodUID = U1, container: ContainerName = MAIN, resource: ResourceName = GPU
) -> Allocation:
    return Allocation(pod, container, resource, {NO_NODE: tuple(map(DeviceID, ids))}, Grant())


class Recording:
    """Hooks that fail a given number of times."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.seen: list[Release] = []

    async def run(self, release: Release) -> None:
        self.seen.append(release)
        if self.failures:
            self.failures -= 1
            raise Unavailable("the wipe failed")


class Node:
    def __init__(self, root: Path, hooks: Hooks) -> None:
        self.allocations = Allocations()
        self.reports: list[Report] = []
        content = CheckpointContent(Inventory(300), self.allocations)
        self.path = root / "checkpoint"
        self.saver = GroupSaver(CheckpointFile(self.path), content.encode)
        self.releaser = Releaser(
            self.allocations, self.saver, hooks, SystemClock(), Backoff(0.01, 0.05), self.reports.append
        )
        for each in (allocation("d0"), allocation("n0", resource=NIC), allocation("d1", pod=U2)):
            self.allocations.add(each)


async def test_without_hooks_devices_are_free_at_once() -> None:
    await NoHooks().run(Release(ResourceName("v/r"), (DeviceID("d"),), PodUID("u"), ContainerName("c")))


def test_a_device_that_two_containers_had_is_released_once_by_the_first() -> None:
    found = releases([allocation("d0", "d1", container=INIT), allocation("d1", "d2"), allocation("d0")])
    assert found == [
        Release(GPU, (DeviceID("d0"), DeviceID("d1")), U1, INIT),
        Release(GPU, (DeviceID("d2"),), U1, MAIN),
    ]


async def test_released_devices_of_a_pod_are_free_and_not_on_disk(root: Path) -> None:
    hooks = Recording()
    node = Node(root, hooks)
    async with running(node.saver.run):
        await node.releaser.release(U1)
        assert node.allocations.pods() == [U2] and b"u1" not in node.path.read_bytes()
        await node.releaser.release(U1)
    assert [each.resource for each in hooks.seen] == [GPU, NIC]


async def test_hooks_are_retried_and_their_failures_reported(root: Path) -> None:
    hooks = Recording(failures=2)
    node = Node(root, hooks)
    async with running(node.saver.run):
        await node.releaser.release(U2)
    assert len(hooks.seen) == 3 and node.allocations.pods() == [U1]
    assert [report.reason for report in node.reports] == ["DeviceReleaseFailed"] * 2
    assert node.reports[0].message == "devices d1 of vendor.com/gpu are not free yet: the wipe failed"


async def test_a_pod_is_not_released_twice_concurrently(root: Path) -> None:
    hooks = Recording()
    node = Node(root, hooks)
    async with running(node.saver.run), anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(node.releaser.release, U2)
    assert len(hooks.seen) == 1 and not node.allocations.releasing(U2)


async def test_devices_are_released_even_if_the_checkpoint_cannot_be_written(root: Path) -> None:
    node = Node(root, NoHooks())
    node.path.mkdir()
    async with running(node.saver.run):
        await node.releaser.release(U1)
        assert node.allocations.pods() == [U2]
        node.path.rmdir()


async def test_all_other_pods_are_released(root: Path) -> None:
    node = Node(root, NoHooks())
    async with running(node.saver.run):
        await node.releaser.retain([U2])
    assert node.allocations.pods() == [U2]
