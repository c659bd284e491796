from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.errors import StateCorrupt
from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.node.devices.checkpoint_content import CheckpointContent
from devlet.node.devices.inventory import Inventory, Moment
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Device, Grant, Options
from devlet.state import device_checkpoint
from devlet.state.device_checkpoint import Encoder, Entry

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
