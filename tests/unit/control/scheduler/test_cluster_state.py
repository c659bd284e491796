"""What the scheduler knows of the cluster."""

from datetime import timedelta
from typing import Any

import pytest

from devlet.control.informers import Informers
from devlet.control.scheduler.cluster_state import ClusterState
from devlet.control.scheduler.settings import Settings
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import format_time
from devlet.testing.fake_clock import FakeClock
from tests.support.workloads import DRIVER, claim, pod
from tests.unit.control.conftest import allocation_on

CONDITIONS: Document = {"bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}


def state(clock: FakeClock | None = None, **settings: Any) -> ClusterState:
    """The state with empty copies of all kinds."""
    cluster: Any = None  # the informers are not run
    return ClusterState(
        Informers(cluster),
        clock or FakeClock(),
        Settings(**settings),
        devices_freed=lambda: None,
        claim_landed=lambda _: None,
        slice_changed=lambda _, __: None,
        slice_removed=lambda _: None,
        taints_changed=lambda _: None,
    )


def a_claim(**status: object) -> ResourceClaim:
    return view(ResourceClaim, {**claim("c"), "status": status})


def a_pod(name: str, **spec: Any) -> Document:
    return pod(name, **({"schedulerName": "default-scheduler"} | spec))


DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (a_pod("p"), True),
        (a_pod("p", schedulerName="other"), False),
        (a_pod("p", schedulingGates=[{"name": "later"}]), False),
        (a_pod("p", nodeName="n1"), False),
        (a_pod("p", claim="c", nodeName="n1"), True),
        (a_pod("p", claim="c", nodeName="n1", schedulerName="other"), False),
        (a_pod("p") | {"status": {"phase": "Failed"}}, False),
        (a_pod("p") | {"metadata": {"name": "p", "namespace": "default", **DELETING}}, False),
    ],
)
def test_pods_of_ours_need_scheduling_if_they_lack_a_node_or_devices(document: Document, expected: bool) -> None:
    assert state().needs_scheduling(view(Pod, document)) is expected


def test_placed_pods_of_other_schedulers_need_devices_if_all_placed_is_set() -> None:
    placed = view(Pod, a_pod("p", claim="c", nodeName="n1", schedulerName="other"))
    assert state(all_placed=True).needs_scheduling(placed)


def test_a_placed_pod_with_an_allocated_claim_needs_nothing() -> None:
    found = state()
    document = claim("c")
    document["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    found.claims.read({**document, "status": {"allocation": allocation_on("n1")}})
    assert not found.needs_scheduling(view(Pod, a_pod("p", claim="c", nodeName="n1")))


def test_devices_have_failed_if_a_condition_says_so_or_time_is_up() -> None:
    clock = FakeClock()
    found = state(clock, binding_timeout=60.0)

    def attached(ago: float, **status: object) -> ResourceClaim:
        stamp = format_time(clock.now() - timedelta(seconds=ago))
        return a_claim(allocation={**allocation_on("n1", **CONDITIONS), "allocationTimestamp": stamp}, **status)

    broken = {"type": "broken", "status": "True", "reason": "R", "message": ""}
    devices = [{"driver": DRIVER, "pool": "n1", "device": "gpu-0", "conditions": [broken]}]
    assert not found.has_failed(a_claim(allocation=allocation_on("n1")))
    assert not found.has_failed(attached(ago=30))
    assert found.has_failed(attached(ago=90)) and found.has_failed(attached(ago=30, devices=devices))


def test_overlaps_are_described() -> None:
    found = state()
    results = a_claim(allocation=allocation_on("n1")).results
    found.claims.reserve(("default", "c"), results)
    assert found.is_in_flight(("default", "c")) and found.overlap(a_claim()) == ""
    found.claims.reserve(("default", "d"), results)
    assert "gpu-0" in found.overlap(a_claim())
