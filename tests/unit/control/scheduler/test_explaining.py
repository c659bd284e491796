"""Why pending pods are not scheduled."""

import pytest

from devlet.control.scheduler.cluster_state import ClusterState
from devlet.control.scheduler.decision import Refusal
from devlet.control.scheduler.explaining import Explainer
from devlet.control.scheduler.pending import PendingPod, PendingPods
from devlet.control.scheduler.queue import Wake
from devlet.control.scheduler.settings import Settings
from devlet.objects.documents import Document, view
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.testing.fake_clock import FakeClock
from tests.support.workloads import node, pod
from tests.unit.control.scheduler.test_cluster_state import state

pytestmark = pytest.mark.anyio


class Cluster:
    """A state and an explainer for pods that are refused."""

    def __init__(self) -> None:
        clock, settings = FakeClock(), Settings()
        self.state: ClusterState = state(clock)
        self.pending = PendingPods(clock, settings.reports)
        self.explainer = Explainer(self.state, self.pending, clock, settings)

    async def reason(self, document: Document, refusal: Refusal | None = Refusal(Wake.ANYTHING)) -> str:
        return await self.explainer.reason(PendingPod(view(Pod, document), refusal))


async def test_the_reason_of_the_last_attempt_is_reported_as_it_is() -> None:
    assert await Cluster().reason(pod("p"), Refusal(Wake.DEVICES, "no such class")) == "no such class"


async def test_a_pod_that_was_not_refused_has_no_reason() -> None:
    assert await Cluster().reason(pod("p"), None) == ""


async def test_a_reason_is_computed_once_for_equal_pods_until_something_changes() -> None:
    cluster = Cluster()
    large = pod("p", requests={"cpu": "99"})
    assert await cluster.reason(large) == "no nodes available to schedule pods"
    cluster.state.nodes.put(view(Node, node("n1")))
    assert await cluster.reason(large) == "no nodes available to schedule pods"
    cluster.pending.queue.changed(Wake.NODES)
    assert await cluster.reason(large) == "0/1 nodes are available: 1 Insufficient cpu"
    cluster.state.nodes.remove(view(Node, node("n1")).name)
    cluster.pending.capacity_taken()
    assert await cluster.reason(large) == "no nodes available to schedule pods"


async def test_a_pod_that_fits_by_now_has_no_reason() -> None:
    cluster = Cluster()
    cluster.state.nodes.put(view(Node, node("n1")))
    assert await cluster.reason(pod("p")) == ""


async def test_what_cannot_be_read_and_missing_claims_are_reasons() -> None:
    cluster = Cluster()
    assert "cpu" in await cluster.reason(pod("p", requests={"cpu": "much"}))
    assert await cluster.reason(pod("p", claim="c")) == 'could not find ResourceClaim "default/c"'
