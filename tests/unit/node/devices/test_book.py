from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.errors import StateCorrupt
from devlet.node.devices.book import Book
from devlet.node.devices.holdings import NO_NODE, Holding, Holdings
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
        self.inventory, self.holdings = Inventory(300), Holdings()
        self.book = Book(self.inventory, self.holdings)


def holding(pod: str, *ids: str, grant: Grant = GRANT, node: int = NO_NODE) -> Holding:
    return Holding(PodUID(pod), ContainerName("main"), GPU, {node: tuple(map(DeviceID, ids))}, grant)


@pytest.mark.spec("DP-8.53")
def test_what_is_written_is_restored_with_devices_grants_and_resources() -> None:
    before, after = Parts(), Parts()
    plugin, _ = before.inventory.register(Offer(GPU, Path("/p")), Options(), None, NOW)
    before.inventory.report(plugin, [Device(DeviceID("d1"))], NOW)
    before.holdings.add(holding("u1", "d1", node=3))
    before.holdings.add(holding("u2", "d2"))
    assert after.book.restore(before.book.content(), NOW) == []
    assert list(after.holdings) == list(before.holdings)
    restored = after.inventory.get(GPU)
    assert restored is not None and restored.healthy == () and restored.stopped == NOW


def test_a_book_that_changes_is_written_as_if_it_had_always_been_so() -> None:
    parts = Parts()
    held = [holding(f"u{number}", f"d{number}") for number in range(200)]
    for each in held:
        parts.holdings.add(each)
    parts.book.content()
    for each in held[::2]:
        parts.holdings.remove(each)
    fresh = Parts()
    for each in held[1::2]:
        fresh.holdings.add(each)
    assert parts.book.content() == fresh.book.content()


def test_an_entry_with_a_broken_answer_is_dropped_alone() -> None:
    good = Entry("u1", "main", GPU, {-1: ("d1",)}, b"")
    bad = Entry("u2", "main", GPU, {-1: ("d2",)}, b"\xff\xff\xff")
    parts = Parts()
    (problem,) = parts.book.restore(Encoder().encode([good, bad], {}), NOW)
    assert "pod u2, container main, vendor.com/gpu" in problem
    assert [each.pod for each in parts.holdings] == ["u1"]


def test_a_file_that_cannot_be_read_changes_nothing() -> None:
    parts = Parts()
    with pytest.raises(StateCorrupt):
        parts.book.restore(b"{", NOW)
    assert len(parts.holdings) == 0 and parts.inventory.resources() == []


def test_an_entry_twice_in_the_file_is_one_holding() -> None:
    entry = Entry("u1", "main", GPU, {-1: ("d1",)}, b"")
    parts = Parts()
    parts.book.restore(Encoder().encode([entry, entry], {}), NOW)
    assert len(parts.holdings) == 1
    found = device_checkpoint.decode(parts.book.content())
    assert found.entries is not None and len(found.entries) == 1
