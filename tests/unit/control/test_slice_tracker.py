"""Slices with the taints of rules."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.control.informers import Informers
from devlet.control.slice_tracker import SliceTracker, with_rules
from devlet.objects import kinds
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import DriverName, PoolName
from devlet.objects.node_drivers import ANNOTATION, NodeDriver, encode
from devlet.objects.types.slice import ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintRule

pytestmark = pytest.mark.anyio

OWN = {"key": "own", "effect": "NoSchedule", "timeAdded": "2024-01-01T00:00:00Z"}


def a_slice(name: str = "s", driver: str = "gpu.example.com", pool: str = "p", *devices: Document) -> Document:
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": list(devices) or [{"name": "d0"}, {"name": "d1"}],
        },
    }


def a_rule(name: str, selector: Document | None, effect: str = "NoExecute", key: str = "") -> Document:
    taint = {"key": key or name, "effect": effect, "timeAdded": "2024-02-02T00:00:00Z"}
    spec = {"taint": taint} | ({"deviceSelector": selector} if selector is not None else {})
    return {"metadata": {"name": name}, "spec": spec}


def keys(slice_: ResourceSlice | None) -> dict[str, list[str]]:
    assert slice_ is not None
    return {device.name: [taint.key for taint in device.taints] for device in slice_.spec.devices}


def merged(slice_: Document, *rules: Document) -> ResourceSlice:
    return with_rules(view(ResourceSlice, slice_), [view(DeviceTaintRule, rule) for rule in rules])


@pytest.mark.spec("DA-7.1")
def test_own_taints_come_first_and_then_rules_by_name() -> None:
    slice_ = a_slice("s", "gpu.example.com", "p", {"name": "d0", "taints": [OWN]}, {"name": "d1"})
    found = merged(slice_, a_rule("z", {}), a_rule("a", {"device": "d0"}))
    assert keys(found) == {"d0": ["own", "a", "z"], "d1": ["z"]}


@pytest.mark.spec("DA-7.1")
def test_a_rule_s_taint_keeps_its_time_and_effect() -> None:
    (device, _) = merged(a_slice(), a_rule("a", {"device": "d0"})).spec.devices
    (taint,) = device.taints
    assert (taint.effect, taint.time_added) == ("NoExecute", "2024-02-02T00:00:00Z")


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        ({"driver": "gpu.example.com"}, True),
        ({"driver": "other.example.com"}, False),
        ({"pool": "p"}, True),
        ({"pool": "q"}, False),
        ({"driver": "gpu.example.com", "pool": "q"}, False),
        ({"driver": "gpu.example.com", "pool": "p", "device": "d0"}, True),
        ({"device": "d7"}, False),
        ({}, True),
    ],
)
def test_all_fields_of_a_selector_must_match(selector: Document, tainted: bool) -> None:
    assert bool(keys(merged(a_slice(), a_rule("a", selector)))["d0"]) is tainted


@pytest.mark.spec("DA-7.4")
def test_a_rule_without_selector_matches_nothing() -> None:
    slice_ = view(ResourceSlice, a_slice())
    assert with_rules(slice_, [view(DeviceTaintRule, a_rule("a", None))]) is slice_


def test_a_slice_without_matching_devices_stays_the_same_object() -> None:
    slice_ = view(ResourceSlice, a_slice())
    assert with_rules(slice_, [view(DeviceTaintRule, a_rule("a", {"device": "d9"}))]) is slice_


class Heard(list[tuple[str, str, str]]):
    """Records each change: the name of the slice, and its taint keys before and after (`-` if it did not exist)."""

    def __call__(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        either = new or old
        assert either is not None
        self.append((either.metadata.name, _shown(old), _shown(new)))


def _shown(slice_: ResourceSlice | None) -> str:
    return "-" if slice_ is None else " ".join(f"{name}:{','.join(taints)}" for name, taints in keys(slice_).items())


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await checkpoint()


@asynccontextmanager
async def tracking(root: Path) -> AsyncIterator[tuple[Store, Informers, Heard, SliceTracker]]:
    async with open_store(root / "db") as store:
        for document in (a_slice("s1"), a_slice("s2", pool="q"), a_slice("s3", driver="nic.example.com", pool="q")):
            await store.create(kinds.RESOURCE_SLICES, document)
        informers, heard = Informers(store), Heard()
        tracker = SliceTracker(informers, heard)
        async with informers.running():
            heard.clear()
            yield store, informers, heard, tracker


async def test_existing_slices_are_reported_with_existing_rules(root: Path) -> None:
    async with open_store(root / "db") as store:
        await store.create(kinds.RESOURCE_SLICES, a_slice())
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("a", {"device": "d0"}))
        informers, heard = Informers(store), Heard()
        async with informers.running():
            tracker = SliceTracker(informers, heard)
            assert heard == [("s", "-", "d0:a d1:")]
            assert [keys(slice_) for slice_ in tracker.all()] == [{"d0": ["a"], "d1": []}]


async def test_only_slices_that_a_rule_matches_change_with_it(root: Path) -> None:
    async with tracking(root) as (store, _, heard, tracker):
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("a", {"driver": "gpu.example.com", "device": "d1"}))
        await until(lambda: len(heard) == 2)
        assert heard == [("s1", "d0: d1:", "d0: d1:a"), ("s2", "d0: d1:", "d0: d1:a")]
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("b", {"pool": "q"}))
        await until(lambda: len(heard) == 4)
        assert heard[2:] == [("s2", "d0: d1:a", "d0:b d1:a,b"), ("s3", "d0: d1:", "d0:b d1:b")]
        assert keys(tracker.get("s1")) == {"d0": [], "d1": ["a"]}


async def test_a_rule_with_a_new_selector_changes_the_old_and_the_new_slices(root: Path) -> None:
    async with tracking(root) as (store, _, heard, _):
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("a", {"pool": "p"}))
        await until(lambda: len(heard) == 1)
        moved = MergePatch({"spec": {"deviceSelector": {"pool": None, "driver": "nic.example.com"}}})
        await store.patch(kinds.DEVICE_TAINT_RULES, "a", moved)
        await until(lambda: len(heard) == 3)
        assert heard[1:] == [("s1", "d0:a d1:a", "d0: d1:"), ("s3", "d0: d1:", "d0:a d1:a")]
        await store.delete(kinds.DEVICE_TAINT_RULES, "a")
        await until(lambda: len(heard) == 4)
        assert heard[3:] == [("s3", "d0:a d1:a", "d0: d1:")]


async def test_the_status_of_a_rule_changes_no_slice(root: Path) -> None:
    async with tracking(root) as (store, informers, heard, tracker):
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("a", {}))
        await until(lambda: len(heard) == 3)
        before = tracker.all()
        condition = {"type": "EvictionInProgress", "status": "False", "reason": "NotStarted", "message": ""}
        status = {"status": {"conditions": [{**condition, "lastTransitionTime": "2025-01-01T00:00:00Z"}]}}
        await store.patch(kinds.DEVICE_TAINT_RULES, "a", MergePatch(status), subresource="status")
        await until(lambda: all(rule.status.conditions for rule in informers.rules.all()))
        assert len(heard) == 3
        assert all(new is old for new, old in zip(tracker.all(), before, strict=True))


@pytest.mark.spec("DA-7.4")
async def test_a_rule_without_a_selector_no_longer_taints_anything(root: Path) -> None:
    async with tracking(root) as (store, _, heard, _):
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("a", {"pool": "p"}))
        await until(lambda: len(heard) == 1)
        await store.patch(kinds.DEVICE_TAINT_RULES, "a", MergePatch({"spec": {"deviceSelector": None}}))
        await until(lambda: len(heard) == 2)
        assert heard[1:] == [("s1", "d0:a d1:a", "d0: d1:")]
        await store.patch(kinds.DEVICE_TAINT_RULES, "a", MergePatch({"spec": {"deviceSelector": {"pool": "p"}}}))
        await until(lambda: len(heard) == 3)


async def test_added_changed_and_removed_slices_have_the_taints_of_rules(root: Path) -> None:
    async with tracking(root) as (store, _, heard, tracker):
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("a", {"pool": "new"}))
        await store.create(kinds.RESOURCE_SLICES, a_slice("s4", pool="new"))
        await until(lambda: heard == [("s4", "-", "d0:a d1:a")])
        await store.patch(kinds.RESOURCE_SLICES, "s4", MergePatch({"spec": {"devices": [{"name": "d5"}]}}))
        await until(lambda: heard[1:] == [("s4", "d0:a d1:a", "d5:a")])
        await store.delete(kinds.RESOURCE_SLICES, "s4")
        await until(lambda: heard[2:] == [("s4", "d5:a", "-")])
        assert tracker.get("s4") is None


def a_node(*gone: str) -> Document:
    drivers = [NodeDriver(DriverName(name), gone_since="2026-05-01T12:00:00Z") for name in gone]
    return {"metadata": {"name": "n", "annotations": {ANNOTATION: encode(drivers)}}}


async def test_slices_of_drivers_that_are_gone_from_their_node_are_hidden_until_they_are_back(root: Path) -> None:
    async with tracking(root) as (store, _, heard, tracker):
        await store.create(kinds.NODES, a_node("gpu.example.com"))
        await until(lambda: len(heard) == 2)
        assert heard == [("s1", "d0: d1:", "-"), ("s2", "d0: d1:", "-")]
        assert [each.metadata.name for each in tracker.all()] == ["s3"]
        assert tracker.hidden() == {"gpu.example.com": {"n"}}
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("a", {}))
        await until(lambda: len(heard) == 3)
        assert heard[2:] == [("s3", "d0: d1:", "d0:a d1:a")]
        await store.patch(kinds.NODES, "n", MergePatch(a_node()))
        await until(lambda: len(heard) == 5)
        assert heard[3:] == [("s1", "-", "d0:a d1:a"), ("s2", "-", "d0:a d1:a")]
        assert tracker.hidden() == {}


async def test_a_hidden_slice_that_is_deleted_is_reported_as_removed(root: Path) -> None:
    async with open_store(root / "db") as store:
        await store.create(kinds.NODES, a_node("gpu.example.com"))
        await store.create(kinds.RESOURCE_SLICES, a_slice())
        informers, heard, removed = Informers(store), Heard(), list[ResourceSlice]()
        tracker = SliceTracker(informers, heard, removed.append)
        async with informers.running():
            assert heard == [] and tracker.has_pool(DriverName("gpu.example.com"), PoolName("p"))
            await store.delete(kinds.RESOURCE_SLICES, "s")
            await until(lambda: removed)
            assert [each.metadata.name for each in removed] == ["s"] and heard == []
            assert not tracker.has_pool(DriverName("gpu.example.com"), PoolName("p"))


async def test_a_cluster_without_rules_has_the_slices_as_published(root: Path) -> None:
    async with open_store(root / "db") as store:
        await store.create(kinds.RESOURCE_SLICES, a_slice())
        await store.create(kinds.DEVICE_TAINT_RULES, a_rule("a", {}))
        informers = Informers(store, rules=False)
        async with informers.running():
            tracker = SliceTracker(informers, Heard())
            assert tracker.get("s") is informers.slices.get("s")
