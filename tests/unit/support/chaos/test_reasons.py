"""What pods say is made up here, but for the last tests, where the scheduler says it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.store.store import Store, open_store
from devlet.control.scheduler import fit
from devlet.control.scheduler.settings import ReportTimes, Settings
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kind_rules import default
from devlet.objects.kinds import Resource
from devlet.testing import builders
from devlet.testing.waiting import until
from tests.support.chaos.reasons import pending, unexplained
from tests.support.chaos.snapshot import Snapshot
from tests.support.chaos.workload import DEVICES, NAMESPACE, PLUGIN_RESOURCE, Workload
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, template, wish
from tests.unit.control.conftest import World

ONE_TAKEN = "0/1 nodes are available: 1 node(s): request gpu needs 1 device, 0 are free of 1 that matches (1 in use)"
EXTENDED = "example.com/gpu"


def stored(document: Document, **status: object) -> Document:
    name = document["metadata"]["name"]
    made = {**document, "metadata": {**document["metadata"], "uid": f"u-{name}"}, "status": status or {}}
    return default(made, now=datetime(2025, 1, 1, tzinfo=UTC))


def says(message: str, document: Document, **status: object) -> Document:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    return stored(document, phase="Pending", conditions=conditions, **status)


def waiting(message: str, claim: str = "mine") -> Document:
    return says(message, pod("train", claim=claim))


def taken(name: str, *devices: str, by: str = "user", pool: str = "n1") -> Document:
    results = [{"request": "gpu", "driver": DRIVER, "pool": pool, "device": each} for each in devices]
    users = [{"resource": "pods", "name": by, "uid": f"u-{by}"}]
    return stored(claim(name), allocation={"devices": {"results": results}}, reservedFor=users)


USER = stored(pod("user", nodeName="n1"), phase="Running")


def snapshot(*pods: Document, claims: tuple[Document, ...] = (), gpus: int = 1) -> Snapshot:
    return Snapshot(
        (USER, *pods), (stored(claim("mine")), *claims), (node("n1"),), (slice_of("n1", gpus),), (device_class(),)
    )


def test_a_pod_that_fits_has_no_reason_to_wait() -> None:
    [complaint] = unexplained(snapshot(waiting("no luck")))
    assert complaint == "pod train u-train fits on n1, and waits all the same; it says: 'no luck'"


def test_a_pod_for_which_nothing_is_free_waits_with_reason() -> None:
    assert unexplained(snapshot(waiting(ONE_TAKEN), claims=(taken("other", "gpu-0"),))) == []


def test_who_says_that_the_cpu_is_not_enough_on_an_empty_node_is_not_believed() -> None:
    [complaint] = unexplained(snapshot(waiting("0/1 nodes are available: 1 Insufficient cpu")))
    assert "fits on n1, and waits all the same" in complaint


@pytest.mark.parametrize(
    ("said", "truth"),
    [
        ("bad weather", "that is no reason that is known here"),
        ("", "that is no reason that is known here"),
        (ONE_TAKEN.replace("0/1", "0/2"), "there are 1 nodes"),
        (ONE_TAKEN.replace("needs 1 device,", "needs 2 devices,"), "that is true of 0 nodes: request gpu needs 2"),
        (ONE_TAKEN.replace("(1 in use)", "(2 in use)"), "that is true of 0 nodes: request gpu needs 1"),
        (ONE_TAKEN.replace("1 node(s): request", "2 node(s): request"), "1 nodes lack nothing but devices"),
        ("0/1 nodes are available: 1 Insufficient cpu", "there are 0 nodes with: Insufficient cpu"),
        ("0/1 nodes are available: 1 node(s): it rains", "that is true of 0 nodes: it rains"),
    ],
)
def test_another_reason_than_the_true_one_is_told_with_what_is_wrong(said: str, truth: str) -> None:
    complaints = unexplained(snapshot(waiting(said), claims=(taken("other", "gpu-0"),)))
    assert any(each.startswith(f"pod train u-train says: {said!r}; but {truth}") for each in complaints)


@pytest.mark.parametrize("user", ["waiting-too", "gone"])
def test_devices_that_only_pods_without_a_node_have_keep_nobody_waiting(user: str) -> None:
    other = says("", pod("waiting-too", claim="other"))
    found = unexplained(snapshot(waiting(ONE_TAKEN), other, claims=(taken("other", "gpu-0", by=user),)))
    assert [each for each in found if "pod train u-train fits on n1" in each]


def test_an_unused_claim_of_its_own_may_be_reallocated() -> None:
    mine = taken("mine", "gpu-9", by="train")
    mine["status"]["allocation"]["nodeSelector"] = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    }
    said = "0/1 nodes are available: 1 the devices of claim mine cannot be used there"
    found = replace(snapshot(waiting(said)), claims=(mine,))
    assert "fits on n1" in unexplained(found)[0]
    mine["status"]["reservedFor"].append({"resource": "pods", "name": "user", "uid": "u-user"})
    assert unexplained(found) == []


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"classes": ()}, f"request gpu: device class {DRIVER} does not exist"),
        ({"claims": ()}, 'could not find ResourceClaim "default/mine"'),
        ({"nodes": ()}, "no nodes available to schedule pods"),
        ({"nodes": (node("n1", pods="1"),)}, "0/1 nodes are available: 1 Too many pods"),
    ],
)
def test_what_is_missing_is_a_reason(wrong: Mapping[str, tuple[Document, ...]], reason: str) -> None:
    lacking = replace(snapshot(waiting(reason)), **wrong)  # type: ignore[arg-type]
    assert unexplained(lacking) == []
    assert len(unexplained(replace(snapshot(waiting("bad weather")), **wrong))) == 1  # type: ignore[arg-type]


def test_a_claim_that_is_not_made_is_a_reason_as_long_as_there_is_no_template() -> None:
    train = says('pod "default/train": ResourceClaim not created yet', pod("train", template="one"))
    assert unexplained(snapshot(train)) == []
    [complaint] = unexplained(replace(snapshot(train), templates=(template("one"),)))
    assert complaint.startswith("pod train u-train has no claim of template one; it says: ")
    gone = [{"name": "gpu", "resourceClaimName": "train-gpu-x"}]
    train = says('could not find ResourceClaim "default/train-gpu-x"', pod("train", template="one"))
    train["status"]["resourceClaimStatuses"] = gone
    assert unexplained(snapshot(train)) == []
    assert len(unexplained(replace(snapshot(train), templates=(template("one"),)))) == 1


def test_an_entry_without_need_of_a_claim_is_passed_over() -> None:
    train = says("no luck", pod("train", template="one"), resourceClaimStatuses=[{"name": "gpu"}])
    assert "fits on n1" in unexplained(snapshot(train))[0]


def test_pods_that_are_bound_use_up_their_node() -> None:
    bound = stored(pod("first", requests={"cpu": "3"}, nodeName="n1"), phase="Running")
    second = says("0/1 nodes are available: 1 Insufficient cpu", pod("second", requests={"cpu": "2"}))
    found = snapshot(bound, second)
    assert [each["metadata"]["name"] for each in pending(found)] == ["second"]
    assert unexplained(found) == []
    ended = {**bound, "status": {"phase": "Succeeded"}}
    assert "fits" in unexplained(replace(found, pods=(ended, second)))[0]


def test_nodes_are_counted_by_what_keeps_the_pod_from_them() -> None:
    begin = "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector; "
    right = "2 node(s): request gpu finds no devices on the node"
    train = pod("train", claim="mine", nodeSelector={"zone": "a"})
    nodes = (node("n1"), node("n2", labels={"zone": "a"}), node("n3", labels={"zone": "a"}))
    assert unexplained(replace(snapshot(says(begin + right, train)), nodes=nodes)) == []
    for wrong in (right.replace("2", "1"), "1 node(s): request gpu finds no free devices (in use)", "2 Too many pods"):
        assert unexplained(replace(snapshot(says(begin + wrong, train)), nodes=nodes))


def test_a_resource_that_a_class_offers_needs_devices() -> None:
    train = pod("train", requests={EXTENDED: "2"})
    said = "1 node(s): request container-0-request-0 needs 2 devices, 1 is free of 2 that match (1 in use)"
    classes = (device_class(extended=EXTENDED),)
    found = snapshot(says(f"0/1 nodes are available: {said}", train), claims=(taken("other", "gpu-0"),), gpus=2)
    assert unexplained(replace(found, classes=classes)) == []
    assert unexplained(replace(found, classes=classes, slices=(slice_of("n1", 3),)))
    assert "Insufficient example.com/gpu" in unexplained(found)[0]


def test_who_was_put_on_a_node_waits_only_for_devices_that_others_have() -> None:
    placed = stored(pod("train", claim="mine", nodeName="n1"), phase="Pending")
    [complaint] = unexplained(snapshot(placed))
    assert complaint == "pod train u-train waits on n1 for devices that are free"
    assert unexplained(snapshot(placed, claims=(taken("other", "gpu-0"),))) == []
    assert pending(snapshot(placed)) == []
    assert unexplained(replace(snapshot(placed), claims=())) == []
    runs = {**placed, "status": {"phase": "Running"}}
    assert unexplained(snapshot(runs)) == ["pod train u-train runs, and not all of its claims are reserved for it"]
    templated = stored(pod("train", template="one", nodeName="n1"), phase="Pending")
    assert unexplained(snapshot(templated)) == []
    [complaint] = unexplained(replace(snapshot(templated), templates=(template("one"),)))
    assert complaint == "pod train u-train has no claim of template one"


def test_pods_that_go_wait_for_nothing() -> None:
    going = waiting("")
    going["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    assert pending(snapshot(going)) == []


# With a scheduler


async def all_of(store: Store) -> Snapshot:
    async def listed(resource: Resource) -> tuple[Document, ...]:
        return tuple((await store.list(resource)).items)

    return Snapshot(
        await listed(kinds.PODS),
        await listed(kinds.RESOURCE_CLAIMS),
        await listed(kinds.NODES),
        await listed(kinds.RESOURCE_SLICES),
        await listed(kinds.DEVICE_CLASSES),
        templates=await listed(kinds.RESOURCE_CLAIM_TEMPLATES),
    )


def gpus() -> list[Document]:
    return [builders.device(f"gpu-{i}", {"index": i}) for i in range(DEVICES)]


@pytest.mark.anyio
@pytest.mark.parametrize("nodes", [1, 2])
async def test_what_the_scheduler_tells_the_pods_of_chaos_is_confirmed(nodes: int, root: Path) -> None:
    async with open_store(root / "cluster.db") as store:
        world = World(store, Settings(reports=ReportTimes(0.05)))
        names = [f"n{number}" for number in range(nodes)]
        workload = Workload(nodes, nodes=names)
        for resource, document in workload.objects():
            await store.create(resource, document, document["metadata"].get("namespace", ""))
        for name in names:
            amounts: dict[str, Any] = {PLUGIN_RESOURCE: str(DEVICES)}
            await world.add(node(name, **amounts), slice_of(name, gpus()))
        async with world.scheduling():
            for _ in range(60):
                await store.create(kinds.PODS, workload.next().document, NAMESPACE)

            async def complaints() -> list[str]:
                return unexplained(await all_of(store))

            await until(complaints, lambda found: not found)
        assert len(pending(await all_of(store))) > 20


@pytest.mark.anyio
async def test_a_scheduler_that_counts_wrong_is_found_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "lacking", lambda *_: ("Insufficient cpu",))
    async with open_store(root / "cluster.db") as store:
        world = World(store, Settings(reports=ReportTimes(0.05)))
        await world.add(
            device_class(), node("n1"), slice_of("n1", 1), claim("mine", wish()), pod("train", claim="mine")
        )
        async with world.scheduling():
            assert await world.reason("train") == "0/1 nodes are available: 1 Insufficient cpu"
        [complaint] = unexplained(await all_of(store))
    assert "fits on n1, and waits all the same" in complaint
