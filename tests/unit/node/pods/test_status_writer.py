"""When the status of a pod is written. What it says is tested with `status`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.store.store import Store
from devlet.errors import Unavailable
from devlet.kit.backoff import Backoff
from devlet.node.pods.manager import Settings
from devlet.objects.documents import Document
from devlet.objects.identifiers import PodUID
from devlet.testing.waiting import until

if TYPE_CHECKING:
    from tests.unit.node.pods.conftest import NodeHarness

pytestmark = pytest.mark.anyio

MakePod = Callable[..., Document]
QUICK = Settings(retry=Backoff(1.0, 2.0))


def health(status: Document) -> str:
    found: str = status["containerStatuses"][0]["allocatedResourcesStatus"][0]["resources"][0]["health"]
    return found


class Away:
    """A cluster that refuses the next writes, as many as `failures` says."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.failures = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def patch(self, *args: Any, **options: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise Unavailable("the API server is away")
        return await self._store.patch(*args, **options)


async def ended(node: "NodeHarness", make_pod: MakePod) -> PodUID:
    node.health["claim:gpu"] = "Healthy"
    uid = await node.create(make_pod("p", restartPolicy="Never", annotations={"devlet.dev/run-for": "5s"}))
    await node.phase("p", "Running")
    await node.pass_time(5)
    assert health(await node.phase("p", "Succeeded")) == "Healthy"
    node.health["claim:gpu"] = "Unhealthy"
    return PodUID(uid)


@pytest.mark.spec("DN-11.23")
async def test_health_that_is_learned_after_the_end_still_reaches_the_status(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now:
        uid = await ended(node, make_pod)
        now.pods.health_changed(frozenset({uid}))
        await node.status("p", lambda found: health(found) == "Unhealthy" and found["phase"] == "Succeeded")


async def test_health_after_the_end_is_written_again_if_that_failed(node: "NodeHarness", make_pod: MakePod) -> None:
    away = Away(node.store)
    node.cluster = cast(Cluster, away)
    async with node.running(QUICK) as now:
        uid = await ended(node, make_pod)
        away.failures = 2
        now.pods.health_changed(frozenset({uid}))
        await node.pass_time(10)
        await node.status("p", lambda found: health(found) == "Unhealthy")
        assert away.failures == 0


async def test_health_that_changes_before_the_end_is_written_reaches_the_status(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    away = Away(node.store)
    node.cluster = cast(Cluster, away)
    node.health["claim:gpu"] = "Healthy"

    async def failures() -> int:
        return away.failures

    async with node.running(QUICK) as now:
        uid = await node.create(make_pod("p", restartPolicy="Never", annotations={"devlet.dev/run-for": "5s"}))
        await node.phase("p", "Running")
        away.failures = 1
        await node.pass_time(5)
        await until(failures, lambda left: not left)
        node.health["claim:gpu"] = "Unhealthy"
        now.pods.health_changed(frozenset({PodUID(uid)}))
        await node.status("p", lambda found: health(found) == "Unhealthy" and found["phase"] == "Succeeded")


async def test_the_end_of_a_pod_is_written_again_if_that_failed(node: "NodeHarness", make_pod: MakePod) -> None:
    away = Away(node.store)
    node.cluster = cast(Cluster, away)
    once = make_pod("p", 1, restartPolicy="Never", annotations={"devlet.dev/run-for": "5s"})
    async with node.running(QUICK) as now, node.plugged(now):
        uid = await node.create(once)
        await node.phase("p", "Running")
        away.failures = 1
        await node.pass_time(5)
        await node.pass_time(10)
        await node.phase("p", "Succeeded")
        assert now.held(uid) == set() and away.failures == 0


async def test_a_pod_that_is_rejected_at_once_has_no_containers_in_its_status(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    node.allocatable["pods"] = "0"
    async with node.running():
        await node.create(make_pod("p"))
        status = await node.phase("p", "Failed")
        assert status["reason"] == "OutOfpods" and "containerStatuses" not in status
