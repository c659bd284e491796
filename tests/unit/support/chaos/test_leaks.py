from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.state.claim_entry import ClaimEntry
from devlet.state.device_entry import Entry
from tests.support.chaos.leaks import leaks
from tests.support.chaos.snapshot import NodeState, Snapshot


def pod(name: str, phase: str = "Running", *, node: str = "n1", **metadata: str) -> Document:
    return {
        "metadata": {"name": name, "uid": f"u-{name}", **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


def claim(name: str, *consumers: str, owner: str = "", allocated: bool = True, **metadata: Any) -> Document:
    owners = [{"kind": "Pod", "name": owner, "uid": f"u-{owner}"}] if owner else []
    status: Document = {"reservedFor": [{"resource": "pods", "name": each, "uid": f"u-{each}"} for each in consumers]}
    if allocated:
        status["allocation"] = {"devices": {}}
    return {"metadata": {"name": name, "uid": f"u-{name}", "ownerReferences": owners, **metadata}, "status": status}


def prepared(name: str, *pods: str) -> ClaimEntry:
    return ClaimEntry(f"u-{name}", name, "default", frozenset(f"u-{each}" for each in pods), {})


HELD = Entry("u-train", "main", "v.com/gpu", {-1: ("a",)}, b"")
STATE = NodeState(
    "n1", (prepared("gpu", "train"),), (HELD,), ("x-u-gpu.json",), {"d": ("u-gpu",)}, frozenset({"u-train"}),
    frozenset({"train"}),
)  # fmt: skip
LIVING = Snapshot((pod("train"), pod("later", "Pending", node="")), (claim("gpu", "train", owner="train"),))


def test_who_lives_may_have_what_it_has() -> None:
    assert leaks(Snapshot(LIVING.pods, LIVING.claims, states=(STATE,))) == []
    assert leaks(Snapshot()) == []


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (claim("gpu", "gone"), "reserved for pod gone u-gone, which is over"),
        (claim("gpu"), "allocated, and reserved for nobody"),
        (claim("gpu", owner="gone", allocated=False), "made for pod gone u-gone, which is over"),
        (claim("gpu", allocated=False, deletionTimestamp="now", finalizers=["f"]), "stays: finalizers ['f']"),
    ],
)
def test_claims_of_pods_that_are_gone_are_reported(found: Document, text: str) -> None:
    assert [each for each in leaks(Snapshot(claims=(found,))) if each.startswith("claim gpu u-gpu: ") and text in each]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_over(phase: str) -> None:
    ended = Snapshot((pod("train", phase),), LIVING.claims, states=(STATE,))
    assert len(leaks(ended)) == 6


def test_what_is_left_on_a_node_is_told_by_each_who_says_so() -> None:
    found = leaks(Snapshot(states=(STATE,)))
    assert found == [
        "node n1: claim gpu u-gpu is in the checkpoint for ['u-train']",
        "node n1: pod u-train has devices in the checkpoint, and is over or not here",
        "node n1: pod u-train has devices in the views, and is over or not here",
        "node n1: pod train has devices in PodResources, and is over or not here",
    ]
    unknown = NodeState("n1", specs=("x-u-gpu.json",), drivers={"d": ("u-gpu",)})
    assert leaks(Snapshot(LIVING.pods, LIVING.claims, states=(unknown,))) == [
        "node n1: driver d has claim u-gpu prepared, of which the node knows nothing",
        "node n1: CDI spec x-u-gpu.json is of no claim that is prepared",
    ]


def test_a_pod_of_another_node_is_not_here() -> None:
    elsewhere = Snapshot((pod("train", node="n2"),), LIVING.claims, states=(STATE,))
    assert len(leaks(elsewhere)) == 4


def test_stuck_pods_are_reported() -> None:
    [text] = leaks(Snapshot((pod("train", deletionTimestamp="now"),)))
    assert "pod train u-train is being deleted, and stays" in text
    [text] = leaks(Snapshot((pod("train", "Pending"),)))
    assert "bound to n1, and does not start" in text


def test_who_was_put_on_a_node_may_wait_for_a_claim_there() -> None:
    placed = pod("train", "Pending")
    placed["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    assert leaks(Snapshot((placed,), (claim("gpu", allocated=False),))) == []
    assert leaks(Snapshot((placed,))) == []
    [text] = leaks(Snapshot((placed,), (claim("gpu", "train"),)))
    assert "bound to n1, and does not start" in text
