"""The control loops, put together."""

from pathlib import Path

import pytest

from devlet.cluster.store.store import Store, open_store
from devlet.daemon import controllers
from devlet.daemon.control import ControlLoops
from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.testing.waiting import until
from tests.support.workloads import device_class, node, pod, slice_of, template

pytestmark = pytest.mark.anyio


def loops(store: Store, *names: str, scheduler: str = "devlet", rules: bool = True) -> ControlLoops:
    return ControlLoops(
        store,
        SystemClock(),
        Registry(),
        controllers=frozenset(names),
        host="here",
        scheduler_names=frozenset({scheduler}),
        rules=rules,
    )


async def fill(store: Store) -> None:
    await store.create(kinds.NODES, node("n1"))
    await store.create(kinds.DEVICE_CLASSES, device_class())
    await store.create(kinds.RESOURCE_SLICES, slice_of("n1", 1))
    await store.create(kinds.RESOURCE_CLAIM_TEMPLATES, template("one"), "default")
    await store.create(kinds.PODS, pod("train", template="one", schedulerName="devlet"), "default")


async def the_pod(store: Store) -> Document:
    return await store.get(kinds.PODS, "train", "default")


@pytest.mark.parametrize("rules", [True, False])
async def test_together_they_bring_a_pod_to_a_node(root: Path, rules: bool) -> None:
    async with open_store(root / "cluster.db") as store:
        await fill(store)
        async with running(loops(store, *controllers.CONTROL, rules=rules).run):
            found = await until(lambda: the_pod(store), lambda found: "nodeName" in found["spec"])
            assert found["spec"]["nodeName"] == "n1"

            async def events() -> list[Document]:
                return [each for each in (await store.list(kinds.EVENTS)).items if each["reason"] == "Scheduled"]

            assert (await until(events))[0]["source"] == {"component": "devlet-scheduler", "host": "here"}


async def test_those_that_are_not_named_do_not_run(root: Path) -> None:
    async with open_store(root / "cluster.db") as store:
        await fill(store)
        async with running(loops(store, controllers.RESOURCE_CLAIM).run):
            found = await until(lambda: the_pod(store), lambda found: "resourceClaimStatuses" in found["status"])
            assert "nodeName" not in found["spec"]


async def test_pods_of_other_schedulers_are_left_alone(root: Path) -> None:
    async with open_store(root / "cluster.db") as store:
        await fill(store)
        await store.create(kinds.PODS, pod("theirs", schedulerName="ours"), "default")
        async with running(loops(store, *controllers.CONTROL, scheduler="ours").run):

            async def theirs() -> bool:
                return "nodeName" in (await store.get(kinds.PODS, "theirs", "default"))["spec"]

            await until(theirs)
            assert "nodeName" not in (await the_pod(store))["spec"]


async def test_when_they_are_stopped_others_can_go_on(root: Path) -> None:
    async with open_store(root / "cluster.db") as store:
        await fill(store)
        async with running(loops(store, controllers.RESOURCE_CLAIM).run):
            await until(lambda: the_pod(store), lambda found: "resourceClaimStatuses" in found["status"])
        async with running(loops(store, *controllers.CONTROL).run):
            await until(lambda: the_pod(store), lambda found: "nodeName" in found["spec"])
