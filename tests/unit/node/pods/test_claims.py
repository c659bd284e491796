"""When workers have the claims of their pods prepared and unprepared. Drivers are on real sockets."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from devlet.cluster.client import Cluster, ListOptions, MergePatch, WatchOptions
from devlet.cluster.store.store import Store
from devlet.errors import Unavailable
from devlet.node.claims.manager import CHECKPOINT
from devlet.node.pods.manager import Settings
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, DriverName, PodUID
from devlet.objects.kinds import EVENTS, PODS, RESOURCE_CLAIMS
from devlet.testing.allocate import allocate
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver
from devlet.testing.waiting import deadline, until

if TYPE_CHECKING:
    from tests.unit.node.pods.conftest import NodeHarness, Running

pytestmark = pytest.mark.anyio

MakePod = Callable[..., Document]
NAME = DriverName("gpu.example.com")
CLAIM = {
    "metadata": {"name": "gpu"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
}


@asynccontextmanager
async def driven(node: "NodeHarness", now: "Running") -> AsyncIterator[FakeDraDriver]:
    async with FakeDraDriver(node.root, NAME, keep=True) as driver:
        await register(now, driver)
        yield driver


async def register(now: "Running", driver: FakeDraDriver) -> None:
    await now.drivers.register(NAME, driver.path, ["v1.DRAPlugin"])

    async def usable() -> bool:
        return now.drivers.is_usable(NAME)

    await until(usable)


async def create(node: "NodeHarness", make_pod: MakePod, **spec: Any) -> PodUID:
    """Create a pod with an allocated claim, as a scheduler does."""
    document = make_pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}], **spec)
    document["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    target = {"kind": "Node", "name": document["spec"].pop("nodeName")}
    await node.store.create(RESOURCE_CLAIMS, CLAIM, "default")
    uid = await node.create(document)
    await allocate(node.store, "gpu", [f"{NAME}/pool/dev-gpu"], ["p"])
    binding = {"metadata": {"name": "p"}, "target": target}
    await node.store.create(PODS, binding, "default", name="p", subresource="binding")
    return PodUID(uid)


def held_up(status: Document) -> str:
    """Return the reason in the status why the container does not start."""
    found = [each["state"].get("waiting", {}).get("message", "") for each in status.get("containerStatuses", ())]
    return "".join(found)


async def test_the_cdi_devices_of_a_driver_reach_the_runtime(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, driven(node, now) as driver:
        uid = await create(node, make_pod)
        await node.phase("p", "Running")
        config = now.runtime.config(uid, ContainerName("main"))
        (prepared,) = driver.prepared.values()
        assert config is not None and config.cdi_devices == prepared.devices[0].cdi_devices


@pytest.mark.spec("DN-11.11")
async def test_a_pod_starts_as_soon_as_its_driver_registers(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now:
        await create(node, make_pod)
        status = await node.status("p", lambda found: f"DRA driver {NAME} is not registered" in held_up(found))
        assert status["phase"] == "Pending"
        event = await node.event("FailedPrepareDynamicResources")
        assert event["message"] == f"Failed to prepare dynamic resources: DRA driver {NAME} is not registered"
        async with driven(node, now):
            await node.pass_time(0.2)
            await node.phase("p", "Running")


async def test_a_status_that_the_node_writes_does_not_cause_another_attempt(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, driven(node, now) as driver:
        driver.fail(PREPARE, text="out of order")
        await create(node, make_pod)
        await node.status("p", lambda found: "out of order" in held_up(found))
        await node.store.patch(PODS, "p", _labelled("a"), "default")
        await node.store.patch(PODS, "p", _labelled("b"), "default")
        await node.pass_time(0.01)
        tries = len(driver.asked(PREPARE))
        driver.recover(PREPARE)
        await node.pass_time(60)
        await node.phase("p", "Running")
        assert len(driver.asked(PREPARE)) == tries + 1 and tries <= 2


async def test_a_pod_that_runs_is_not_prepared_again_after_a_restart(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, driven(node, now):
        await create(node, make_pod)
        await node.phase("p", "Running")
    async with node.running() as now, driven(node, now) as driver:
        await node.store.delete(PODS, "p", "default")
        await node.gone("p")
        assert not driver.asked(PREPARE) and len(driver.asked(UNPREPARE)) == 1 and not driver.prepared


@pytest.mark.parametrize("lost", ["the checkpoint", "what ran, in a restart of the machine"])
async def test_claims_are_prepared_again_after_the_checkpoint_or_the_containers_were_lost(
    node: "NodeHarness", make_pod: MakePod, lost: str
) -> None:
    async with node.running() as now, driven(node, now):
        await create(node, make_pod)
        await node.phase("p", "Running")
    if lost == "the checkpoint":
        (node.root / CHECKPOINT).unlink()
    else:
        node.boot = "b2"
    async with node.running() as now, driven(node, now) as driver:
        await node.clock.advance(0.2)
        await driver.until_asked(PREPARE, 1)
        await node.phase("p", "Running")
        await node.store.delete(PODS, "p", "default")
        await node.gone("p")
        assert not driver.prepared


async def hanging(driver: FakeDraDriver) -> None:
    with deadline():
        await driver.until_asked(PREPARE)


async def test_a_pod_with_a_slow_driver_reports_that_its_containers_are_being_created(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running(Settings(address="10.0.0.1")) as now, driven(node, now) as driver:
        driver.hang(PREPARE)
        await create(node, make_pod)
        await hanging(driver)
        await node.pass_time(1)
        status = await node.status("p", lambda found: "startTime" in found)
        assert (status["phase"], status["hostIP"]) == ("Pending", "10.0.0.1")
        assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
        driver.recover(PREPARE)
        await node.phase("p", "Running")


class Unreachable:
    """A cluster that does not accept the first status of a pod."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.failures = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def patch(self, *args: Any, **options: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise Unavailable("the API server is away")
        return await self._store.patch(*args, **options)


async def test_preparing_continues_if_the_status_cannot_be_written(node: "NodeHarness", make_pod: MakePod) -> None:
    node.cluster = cast(Cluster, Unreachable(node.store))
    async with node.running() as now, driven(node, now) as driver:
        driver.hang(PREPARE)
        await create(node, make_pod)
        await hanging(driver)
        await node.pass_time(1)
        await node.status("p", lambda found: "startTime" in found)
        driver.recover(PREPARE)
        await node.phase("p", "Running")
        assert len(driver.asked(PREPARE)) == 1


@pytest.mark.parametrize("since", ["the start", "the preparation"])
async def test_a_deadline_ends_the_wait_for_a_driver(node: "NodeHarness", make_pod: MakePod, since: str) -> None:
    deadline = {"activeDeadlineSeconds": 5}

    async def alarms() -> list[float]:
        return node.clock.wakes_at

    async with node.running() as now, driven(node, now) as driver:
        driver.hang(PREPARE)
        await create(node, make_pod, **(deadline if since == "the start" else {}))
        await hanging(driver)
        await node.pass_time(1)
        await node.status("p", lambda found: "startTime" in found)
        if since == "the preparation":
            await node.store.patch(PODS, "p", MergePatch({"spec": deadline}), "default")
        await until(alarms, lambda found: 5.0 in found)
        await node.pass_time(5)
        driver.recover(PREPARE)
        status = await node.phase("p", "Failed")
        assert status["reason"] == "DeadlineExceeded" and not driver.prepared
        assert not (await node.store.list(EVENTS, options=ListOptions(field_selector="reason=Started"))).items


async def test_a_pod_that_was_never_prepared_is_unprepared_as_soon_as_a_driver_changes(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, driven(node, now) as driver:
        driver.fail(PREPARE, text="out of order")
        driver.fail(UNPREPARE, text="still busy")
        await create(node, make_pod)
        await node.status("p", lambda found: "out of order" in held_up(found))
        await node.store.delete(PODS, "p", "default")
        await driver.until_asked(UNPREPARE, 1)
        await node.event("FailedUnprepareDynamicResources")
        driver.recover(UNPREPARE)
        await now.drivers.deregister(NAME, driver.path)
        await register(now, driver)
        await node.pass_time(0.2)  # and not the second until the next attempt without a hint
        await node.gone("p")


def ended_but_not_over(status: Document) -> bool:
    found = {each["type"]: (each["status"], each.get("reason")) for each in status["conditions"]}
    (container,) = status["containerStatuses"]
    return (
        status["phase"] == "Running"
        and "terminated" in container["state"]
        and not container["ready"]
        and found["Ready"] == found["ContainersReady"] == ("False", "ContainersNotReady")
        and found["Initialized"] == ("True", None)
    )


@pytest.mark.parametrize("how", ["deleted", "by itself", "late"])
async def test_the_status_shows_ended_containers_while_unprepare_fails(
    node: "NodeHarness", make_pod: MakePod, how: str
) -> None:
    once: Document = {"restartPolicy": "Never", "annotations": {"devlet.dev/run-for": "10s"}}
    spec: dict[str, Any] = {"deleted": {}, "by itself": once, "late": {"activeDeadlineSeconds": 10}}[how]
    async with node.running() as now, driven(node, now) as driver:
        await create(node, make_pod, **spec)
        await node.phase("p", "Running")
        driver.fail(UNPREPARE, text="still busy")
        if how == "deleted":
            await node.store.delete(PODS, "p", "default")
        else:
            await node.pass_time(10)
        status = await node.status("p", ended_but_not_over)
        assert "reason" not in status
        driver.recover(UNPREPARE)
        await node.pass_time(30)
        if how == "deleted":
            await node.gone("p")
        else:
            status = await node.phase("p", "Succeeded" if how == "by itself" else "Failed")
            assert status.get("reason") == ("DeadlineExceeded" if how == "late" else None)


@pytest.mark.parametrize("how", ["deleted", "by itself"])
async def test_the_status_shows_containers_that_ended_while_devlet_was_down_while_unprepare_fails(
    node: "NodeHarness", make_pod: MakePod, how: str
) -> None:
    async with node.running() as now, driven(node, now):
        await create(node, make_pod, restartPolicy="Never", annotations={"devlet.dev/run-for": "10s"})
        await node.phase("p", "Running")
    if how == "deleted":
        await node.store.delete(PODS, "p", "default")
    else:
        await node.clock.advance(10)
    async with node.running() as now:
        await node.status("p", ended_but_not_over)
        async with driven(node, now):
            await node.pass_time(30)
            await (node.gone("p") if how == "deleted" else node.phase("p", "Succeeded"))


async def test_the_end_of_a_pod_is_a_single_write_if_nothing_fails(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, driven(node, now):
        await create(node, make_pod, restartPolicy="Never", annotations={"devlet.dev/run-for": "10s"})
        await node.phase("p", "Running")
        before = await node.store.get(PODS, "p", "default")
        since = WatchOptions(resource_version=before["metadata"]["resourceVersion"])
        async with node.store.watch(PODS, "default", since) as changes:
            await node.pass_time(10)
            await node.phase("p", "Succeeded")
            assert (await anext(changes)).object["status"]["phase"] == "Succeeded"


@pytest.mark.spec("DN-9.2.08")
async def test_a_pod_is_over_only_after_its_claims_are_unprepared(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, driven(node, now) as driver:
        await create(node, make_pod)
        await node.phase("p", "Running")
        driver.fail(UNPREPARE, text="still busy")
        await node.store.delete(PODS, "p", "default")
        event = await node.event("FailedUnprepareDynamicResources")
        assert "still busy" in event["message"]
        assert (await node.store.get(PODS, "p", "default"))["status"]["phase"] == "Running"
        driver.recover(UNPREPARE)
        await node.pass_time(30)
        await node.gone("p")


def _labelled(value: str) -> MergePatch:
    return MergePatch({"metadata": {"labels": {"x": value}}})
