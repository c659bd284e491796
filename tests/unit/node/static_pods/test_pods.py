from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.events import Recorder
from devlet.cluster.store.store import Store, open_store
from devlet.errors import NotFound
from devlet.kit.parts import running
from devlet.node.static_pods.manifest import MIRROR, StaticPod, read
from devlet.node.static_pods.pods import Changes, StaticPods, is_mirror
from devlet.objects.documents import Document
from devlet.objects.identifiers import NodeName
from devlet.objects.kinds import NODES, PODS
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

NODE = NodeName("n1")


def static(name: str = "web", image: str = "x") -> StaticPod:
    spec = f"{{containers: [{{name: m, image: {image}}}]}}"
    text = f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {spec}}}"
    return read(text.encode(), Path("/a/web.yaml"), NODE, datetime(2025, 1, 1, tzinfo=UTC))


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


@pytest.fixture
async def pods(store: Store) -> StaticPods:
    uid = (await store.create(NODES, {"metadata": {"name": NODE}}))["metadata"]["uid"]
    clock = FakeClock()
    return StaticPods(store, NODE, Recorder(store, "devlet", NODE, clock), clock, owner=lambda: uid)


def following(pods: StaticPods) -> Any:
    async def run(*, task_status: Any) -> None:
        await pods.run(lambda changes: None, task_status=task_status)

    return running(run)


async def mirror(store: Store, uid: str = "") -> Document:
    """Return a mirror pod with this hash."""

    async def read() -> Document:
        try:
            return await store.get(PODS, "web-n1", "default")
        except NotFound:
            return {}

    return await until(read, lambda found: bool(found) and uid in found["metadata"]["annotations"][MIRROR])


async def test_pods_that_files_define_start_and_others_stop(pods: StaticPods) -> None:
    one, two = static("one"), static("two")
    assert [each.static for each in pods.replace([one, two]).new] == [one, two]
    assert pods.replace([two, one]) == Changes()
    assert pods.replace([two]) == Changes(gone=(one.uid,))
    assert pods.uid("default", "one-n1") == one.uid
    assert pods.ended(two.uid) == Changes()
    assert pods.ended(one.uid) == Changes()
    assert pods.uid("default", "one-n1") is None


async def test_a_changed_pod_waits_for_the_end_of_its_predecessor(pods: StaticPods) -> None:
    before, between, after = static(), static(image="y"), static(image="z")
    pods.replace([before])
    assert pods.replace([between]) == Changes(gone=(before.uid,))
    assert pods.replace([after]).new == ()
    (new,) = pods.ended(before.uid).new
    assert new.static == after


async def test_a_mirror_follows_its_pod(pods: StaticPods, store: Store) -> None:
    first, second = static(), static(image="y")
    async with following(pods):
        (subject,) = pods.replace([first]).new
        made = await mirror(store, first.uid)
        assert is_mirror(made) and made["metadata"]["ownerReferences"][0]["kind"] == "Node"
        await subject.write_status({"phase": "Running"})
        await until(lambda: mirror(store), lambda found: found["status"]["phase"] == "Running")
        pods.see(await mirror(store))
        pods.replace([second])
        pods.ended(first.uid)

        async def gone() -> bool:
            pods_there = (await store.list(PODS)).items
            return all(each["metadata"]["uid"] != made["metadata"]["uid"] for each in pods_there)

        await until(gone)
        pods.lose(made)
        assert (await mirror(store, second.uid))["spec"]["containers"][0]["image"] == "y"


async def test_the_status_of_a_mirror_with_another_hash_is_ignored(pods: StaticPods, store: Store) -> None:
    async with following(pods):
        pods.replace([static()])
        made = await mirror(store)
    ran = {**made, "status": {"phase": "Succeeded"}}
    for pod, phase in ((static(), "Succeeded"), (static(image="y"), "Pending")):
        again = StaticPods(store, NODE, Recorder(store, "devlet", NODE, FakeClock()), FakeClock())
        assert await again.begin([ran]) == ()
        (subject,) = again.replace([pod]).new
        assert subject.pod.status.phase == phase


async def test_a_mirror_with_a_finalizer_is_deleted_once_and_replaced_when_it_is_gone(
    pods: StaticPods, store: Store
) -> None:
    async with following(pods):
        pods.replace([static()])
        made = await mirror(store)
        await store.patch(PODS, "web-n1", MergePatch({"metadata": {"finalizers": ["example.com/hold"]}}), "default")
        await store.delete(PODS, "web-n1", "default")
        held = await mirror(store)
        pods.see(held)
        pods.see(held)
        await store.patch(PODS, "web-n1", MergePatch({"metadata": {"finalizers": None}}), "default")
        pods.lose(held)
        again = await until(lambda: mirror(store), lambda found: found["metadata"]["uid"] != made["metadata"]["uid"])
        assert "deletionTimestamp" not in again["metadata"]
