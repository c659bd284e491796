"""What pods say is made up here; what they ought to say is not."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from devlet.objects.defaults import default
from devlet.objects.documents import Document
from devlet.testing.chaos_reasons import pending, unexplained
from devlet.testing.chaos_snapshot import Snapshot
from devlet.testing.workloads import DRIVER, claim, device_class, node, pod, slice_of


def stored(document: Document, **status: object) -> Document:
    name = document["metadata"]["name"]
    made = {**document, "metadata": {**document["metadata"], "uid": f"u-{name}"}, "status": status or {}}
    return default(made, now=datetime(2025, 1, 1, tzinfo=UTC))


def waiting(message: str, claim: str = "mine") -> Document:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    return stored(pod("train", claim=claim), phase="Pending", conditions=conditions)


def taken(name: str, *devices: str) -> Document:
    results = [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": each} for each in devices]
    return stored(claim(name), allocation={"devices": {"results": results}})


def snapshot(*pods: Document, claims: tuple[Document, ...] = (), gpus: int = 1) -> Snapshot:
    return Snapshot(pods, (stored(claim("mine")), *claims), (node("n1"),), (slice_of("n1", gpus),), (device_class(),))


def truth(found: Snapshot) -> str:
    """What the judge would have it say."""
    [complaint] = unexplained(found)
    return complaint.partition("; but: ")[2].strip("'\"")


def test_a_pod_that_fits_has_no_reason_to_wait() -> None:
    [complaint] = unexplained(snapshot(waiting("no luck")))
    assert complaint == "pod train u-train fits, and waits all the same; it says: 'no luck'"


def test_a_pod_for_which_nothing_is_free_waits_with_reason() -> None:
    full = snapshot(waiting(""), claims=(taken("other", "gpu-0"),))
    reason = truth(full)
    assert reason.startswith("0/1 nodes are available: 1 ")
    assert unexplained(replace(full, pods=(waiting(reason),))) == []


def test_another_reason_than_the_true_one_is_told_with_both() -> None:
    [complaint] = unexplained(snapshot(waiting("bad weather"), claims=(taken("other", "gpu-0"),)))
    assert complaint.startswith("pod train u-train says: 'bad weather'; but: '0/1 nodes are available: ")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"classes": ()}, f"request gpu: device class {DRIVER} does not exist"),
        ({"claims": ()}, 'could not find ResourceClaim "default/mine"'),
        ({"nodes": ()}, "no nodes available to schedule pods"),
        ({"nodes": (node("n1", pods="0"),)}, "0/1 nodes are available: 1 Too many pods"),
    ],
)
def test_what_is_missing_is_a_reason(wrong: dict[str, tuple[Document, ...]], reason: str) -> None:
    lacking = replace(snapshot(waiting(reason)), **wrong)  # type: ignore[arg-type]
    assert unexplained(lacking) == []


def test_pods_that_are_bound_use_up_their_node() -> None:
    bound = stored(pod("first", requests={"cpu": "3"}, nodeName="n1"), phase="Running")
    second = stored(pod("second", requests={"cpu": "2"}), phase="Pending")
    found = snapshot(bound, second)
    assert [each.name for each in pending(found)] == ["second"]
    assert truth(found) == "0/1 nodes are available: 1 Insufficient cpu"
    ended = {**bound, "status": {"phase": "Succeeded"}}
    assert "fits" in unexplained(replace(found, pods=(ended, second)))[0]


def test_pods_that_go_wait_for_nothing() -> None:
    going = waiting("")
    going["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    assert pending(snapshot(going)) == []
