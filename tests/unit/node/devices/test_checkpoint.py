from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.devices.allocations import Allocations
from devlet.node.devices.checkpoint import Checkpoint
from devlet.node.devices.checkpoint_content import CheckpointContent
from devlet.node.devices.inventory import Inventory
from devlet.node.reports import Report
from devlet.objects.identifiers import DeviceID, PodUID, ResourceName
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


async def test_a_device_that_an_entry_gives_to_a_second_pod_is_left_out_and_reported(node: Node) -> None:
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
