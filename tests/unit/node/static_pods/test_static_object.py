from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.cluster.events import NORMAL, Recorder
from devlet.cluster.store.store import open_store
from devlet.kit.parts import running
from devlet.node.static_pods.manifest import StaticPod, read
from devlet.node.static_pods.static_object import StaticObject
from devlet.objects.identifiers import ContainerName, NodeName, ObjectKey
from devlet.objects.kinds import EVENTS
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

TEXT = b"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: x}]}}"


@pytest.fixture
def static() -> StaticPod:
    return read(TEXT, Path("/a/web.yaml"), NodeName("n1"), datetime(2025, 1, 1, tzinfo=UTC))


async def test_a_status_is_kept_and_written(static: StaticPod, root: Path) -> None:
    written: list[ObjectKey] = []
    async with open_store(root / "cluster.db") as store:
        found = StaticObject(static, Recorder(store, "devlet", "n1", FakeClock()), written.append)
        await found.write_status({"phase": "Running", "reason": None, "startTime": "T"})
        await found.write_status({"phase": "Failed", "reason": "Why"})
        assert (found.pod.status.phase, found.pod.status.reason, found.pod.status.start_time) == ("Failed", "Why", "T")
        await found.write_status({"reason": None})
        assert "reason" not in found.document["status"] and found.wanted["reason"] is None
        assert written == [("default", "web-n1")] * 3
        found.see({"metadata": {}})
        await found.delete()
        assert found.pod.uid == static.uid and not found.is_gone and static.document["status"] == {"phase": "Pending"}


async def test_the_status_of_the_mirror_shows_what_ran_before(static: StaticPod, root: Path) -> None:
    async with open_store(root / "cluster.db") as store:
        recorder = Recorder(store, "devlet", "n1", FakeClock())
        found = StaticObject(static, recorder, lambda key: None, {"phase": "Succeeded"})
        assert found.pod.is_finished
        async with running(recorder.run):
            found.record(NORMAL, "Started", "it has", ContainerName("main"))
        (event,) = (await store.list(EVENTS)).items
        about = event["involvedObject"]
        assert (about["uid"], about["fieldPath"]) == (static.uid, "spec.containers{main}")
