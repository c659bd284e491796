from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from devlet.errors import InvalidInput, StateCorrupt
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.node.devices.checkpoint import Checkpoint, CheckpointContent, learned
from devlet.node.devices.inventory import Inventory, Moment
from devlet.node.reports import Report
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    ResourceHealth,
    ResourceStatus,
)
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import ExtendedResourceClaimStatus, ExtendedResourceMapping, Pod, PodStatus
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Device, Grant, Options
from devlet.state import device_checkpoint
from devlet.state.checkpoint_file import CheckpointFile
from devlet.state.device_checkpoint import Encoder, Entry

pytestmark = pytest.mark.anyio

GPU = ResourceName("vendor.com/gpu")
U1 = PodUID("u1")


class Node:
    def __init__(self, root: Path) -> None:
        self.path = root / device_checkpoint.FILE_NAME
        self.allocations = Allocations()
        self.reports: list[Report] = []
        content = CheckpointContent(Inventory(300), self.allocations)
        self.checkpoint = Checkpoint(CheckpointFile(self.path), content, SystemClock(), self.reports.append)

    def found(self, pattern: str) -> list[Path]:
        return list(self.path.parent.glob(pattern))


@pytest.fixture
def node(root: Path) -> Node:
    return Node(root)


def entry(pod: str, device: str) -> Entry:
    return Entry(pod, "main", GPU, {-1: (device,)}, b"")


@pytest.mark.spec("DP-8.36")
async def test_a_node_without_a_checkpoint_has_no_damage(node: Node) -> None:
    await node.checkpoint.restore()
    assert not node.checkpoint.existed and not node.checkpoint.damage and not node.reports


async def test_what_was_saved_is_restored(node: Node, root: Path) -> None:
    node.path.write_bytes(Encoder().encode([entry("u1", "dev-0")], {GPU: ("dev-0",)}))
    await node.checkpoint.restore()
    assert node.checkpoint.existed and node.allocations.owner(GPU, DeviceID("dev-0")) == U1
    async with running(node.checkpoint.saver.run):
        for each in node.allocations.of_pod(U1):
            node.allocations.remove(each)
        await node.checkpoint.saver.save()
    again = Node(root)
    await again.checkpoint.restore()
    assert again.checkpoint.existed and len(again.allocations) == 0


async def test_a_damaged_checkpoint_is_kept_and_reported(node: Node) -> None:
    node.path.write_bytes(b'{"Data":{"PodDeviceEntries":[{"Pod')
    await node.checkpoint.restore()
    (aside,) = node.found(f"{device_checkpoint.FILE_NAME}.damaged-*")
    assert aside.read_bytes().endswith(b'{"Pod') and str(aside) in node.checkpoint.damage[0]
    (report,) = node.reports
    assert report.reason == "DeviceCheckpointDamaged" and str(aside) in report.message
    assert not node.checkpoint.existed


async def test_files_of_killed_writers_are_removed(node: Node, root: Path) -> None:
    for name in (".123456", f".{device_checkpoint.FILE_NAME}.x1.tmp"):
        (root / name).write_text("half")
    await node.checkpoint.restore()
    assert node.found(".*") == []


async def test_a_device_of_a_second_pod_is_dropped_and_reported(node: Node) -> None:
    twice = Encoder().encode([entry("u1", "dev-0"), entry("u2", "dev-0")], {GPU: ("dev-0", "dev-1")})
    node.path.write_bytes(twice)
    await node.checkpoint.restore()
    assert node.allocations.owner(GPU, DeviceID("dev-0")) == U1 and node.allocations.pods() == [U1]
    (report,) = node.reports
    assert "device dev-0 of vendor.com/gpu is held twice: by pod u1, " in report.message
    assert f"an entry of {device_checkpoint.FILE_NAME} was dropped" in report.message


async def test_a_checkpoint_that_is_not_a_file_is_an_error(node: Node) -> None:
    node.path.mkdir()
    with pytest.raises(InvalidInput, match="is not a file"):
        await node.checkpoint.restore()


GPU = ResourceName("vendor.com/gpu")
NOW = Moment(datetime(2026, 1, 1, tzinfo=UTC), 0.0)
GRANT = Grant(
    env={"A": "1"},
    mounts=(Mount("/in", "/out", True),),
    devices=(DeviceNode("/dev/in", "/dev/out", "rw"),),
    annotations={"note": "x"},
    cdi_devices=("vendor.com/gpu=0",),
)


class Parts:
    def __init__(self) -> None:
        self.inventory, self.allocations = Inventory(300), Allocations()
        self.content = CheckpointContent(self.inventory, self.allocations)


def allocation(pod: str, *ids: str, grant: Grant = GRANT, node: int = NO_NODE) -> Allocation:
    return Allocation(PodUID(pod), ContainerName("main"), GPU, {node: tuple(map(DeviceID, ids))}, grant)


@pytest.mark.spec("DP-8.53")
def test_what_is_written_is_restored_with_devices_grants_and_resources() -> None:
    before, after = Parts(), Parts()
    plugin, _ = before.inventory.register(Offer(GPU, Path("/p")), Options(), None, NOW)
    before.inventory.report(plugin, [Device(DeviceID("d1"))], NOW)
    before.allocations.add(allocation("u1", "d1", node=3))
    before.allocations.add(allocation("u2", "d2"))
    assert after.content.restore(before.content.encode(), NOW) == []
    assert list(after.allocations) == list(before.allocations)
    restored = after.inventory.get(GPU)
    assert restored is not None and restored.healthy == () and restored.stopped == NOW


def test_content_after_changes_is_encoded_like_new_content() -> None:
    parts = Parts()
    held = [allocation(f"u{number}", f"d{number}") for number in range(200)]
    for each in held:
        parts.allocations.add(each)
    parts.content.encode()
    for each in held[::2]:
        parts.allocations.remove(each)
    fresh = Parts()
    for each in held[1::2]:
        fresh.allocations.add(each)
    assert parts.content.encode() == fresh.content.encode()


def test_an_entry_with_a_broken_answer_is_dropped_alone() -> None:
    good = Entry("u1", "main", GPU, {-1: ("d1",)}, b"")
    bad = Entry("u2", "main", GPU, {-1: ("d2",)}, b"\xff\xff\xff")
    parts = Parts()
    (problem,) = parts.content.restore(Encoder().encode([good, bad], {}), NOW)
    assert "pod u2, container main, vendor.com/gpu" in problem
    assert [each.pod for each in parts.allocations] == ["u1"]


def test_a_file_that_cannot_be_read_changes_nothing() -> None:
    parts = Parts()
    with pytest.raises(StateCorrupt):
        parts.content.restore(b"{", NOW)
    assert len(parts.allocations) == 0 and parts.inventory.resources() == []


def test_an_entry_twice_in_the_file_is_one_allocation() -> None:
    entry = Entry("u1", "main", GPU, {-1: ("d1",)}, b"")
    parts = Parts()
    parts.content.restore(Encoder().encode([entry, entry], {}), NOW)
    assert len(parts.allocations) == 1
    found = device_checkpoint.decode(parts.content.encode())
    assert found.entries is not None and len(found.entries) == 1


HELD = ResourceStatus(name="vendor.com/gpu", resources=(ResourceHealth(resource_id="d1", health="Healthy"),))


def pod(state: ContainerState, *statuses: ResourceStatus) -> Pod:
    container = ContainerStatus(name=ContainerName("main"), state=state, allocated_resources_status=statuses)
    return Pod(metadata=ObjectMeta(uid="u"), status=PodStatus(container_statuses=(container,)))


def test_the_status_of_a_running_container_contains_its_devices() -> None:
    (found,) = learned(pod(ContainerState(running=ContainerStateRunning()), HELD))
    assert found.key == ("u", "main", "vendor.com/gpu") and found.devices == {"d1": ()} and found.grant is None


def test_a_container_that_has_ended_has_no_devices() -> None:
    assert learned(pod(ContainerState(terminated=ContainerStateTerminated()), HELD)) == []


def test_claims_are_not_devices_of_plugins() -> None:
    claim = ResourceStatus(name="claim:gpu", resources=HELD.resources)
    assert learned(pod(ContainerState(running=ContainerStateRunning()), claim)) == []


@pytest.mark.spec("DN-11.18")
@pytest.mark.parametrize(("container", "found"), [("main", []), ("other", ["vendor.com/gpu"])])
def test_devices_of_a_claim_behind_an_extended_resource_are_not_devices_of_plugins(
    container: str, found: list[str]
) -> None:
    running = pod(ContainerState(running=ContainerStateRunning()), HELD)
    mapping = ExtendedResourceMapping(container_name=container, resource_name=HELD.name, request_name="r")
    claim = ExtendedResourceClaimStatus(resource_claim_name="c", request_mappings=(mapping,))
    status = replace(running.status, extended_resource_claim_status=claim)
    assert [each.resource for each in learned(replace(running, status=status))] == found
