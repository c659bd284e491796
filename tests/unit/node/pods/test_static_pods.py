"""Static pods on a node: files are added, changed and removed, and the cluster has a mirror pod for each."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import DeleteOptions, StrategicMergePatch
from devlet.cluster.store.store import Store
from devlet.errors import NotFound, Unavailable
from devlet.node.static_pods.manifest import HASH, MIRROR
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, PODS
from devlet.objects.types.node import Taint
from devlet.testing.waiting import until

if TYPE_CHECKING:
    from tests.unit.node.pods.conftest import NodeHarness, Running

pytestmark = pytest.mark.anyio

MakePod = Callable[..., Document]
NAME = "web-n1"


class Site:
    """A node with a directory of manifests that has one pod."""

    def __init__(self, node: "NodeHarness", make_pod: MakePod) -> None:
        self.node = node
        self._make_pod = make_pod
        self.file = node.manifests / "web.json"

    def write(self, gpus: int = 0, **spec: Any) -> None:
        """Replace the file in one step."""
        self.node.manifests.mkdir(exist_ok=True)
        document = {"apiVersion": "v1", "kind": "Pod", **self._make_pod("web", gpus, **spec)}
        new = self.node.manifests / ".new"
        new.write_text(json.dumps(document))
        new.rename(self.file)

    async def register(self) -> str:
        made = await self.node.store.create(NODES, {"metadata": {"name": "n1"}})
        self.node.node_uid = made["metadata"]["uid"]
        return made["metadata"]["uid"]  # type: ignore[no-any-return]

    async def mirror(self, holds: Callable[[Document], bool] = bool) -> Document:
        async def read() -> Document:
            try:
                return await self.node.store.get(PODS, NAME, "default")
            except NotFound:
                return {}

        return await until(read, lambda found: bool(found) and holds(found))

    async def runs(self, holds: Callable[[Document], bool] = bool) -> Document:
        return await self.mirror(lambda found: found["status"].get("phase") == "Running" and holds(found))


def uid(document: Document) -> str:
    found: str = document["metadata"]["uid"]
    return found


def pod_hash(mirror: Document) -> str:
    found: str = mirror["metadata"]["annotations"][MIRROR]
    return found


def held(now: "Running", mirror: Document) -> set[str]:
    return now.held(pod_hash(mirror))


@pytest.fixture
async def site(node: "NodeHarness", make_pod: MakePod) -> Site:
    site = Site(node, make_pod)
    await site.register()
    return site


@pytest.mark.spec("KA-9.3o")
async def test_a_file_becomes_a_pod_with_a_mirror_in_the_cluster(node: "NodeHarness", site: Site) -> None:
    async with node.running() as now, node.plugged(now):
        site.write(1)
        mirror = await site.runs()
        metadata = mirror["metadata"]
        assert metadata["annotations"][HASH] == pod_hash(mirror) != metadata["uid"]
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Node", "n1", node.node_uid, True)
        assert held(now, mirror) == {"dev-0"}
        assert mirror["status"]["containerStatuses"][0]["containerID"] == f"none://{pod_hash(mirror)}/main"
        (active,) = now.pods.active()
        assert active.uid == pod_hash(mirror) and now.pods.find("default", NAME) == active
        assert (await node.event("Started"))["involvedObject"]["uid"] == active.uid


async def test_a_static_pod_keeps_running_over_a_restart(node: "NodeHarness", site: Site) -> None:
    async with node.running() as now, node.plugged(now):
        site.write(1)
        before = await site.runs()
    await node.clock.advance(60)
    async with node.running() as now, node.plugged(now):
        await until(active(now), lambda pods: bool(pods))
        after = await site.runs()
        assert uid(after) == uid(before) and held(now, after) == {"dev-0"}
        started = [each["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] for each in (before, after)]
        assert started[0] == started[1]


def active(now: "Running") -> Callable[[], Any]:
    async def read() -> list[Any]:
        return now.pods.active()

    return read


@pytest.mark.spec("KA-9.3p")
async def test_removing_a_file_removes_the_pod_and_its_mirror(node: "NodeHarness", site: Site) -> None:
    async with node.running() as now, node.plugged(now):
        site.write(1)
        mirror = await site.runs()
        site.file.unlink()
        await node.gone(NAME)
        assert held(now, mirror) == set() and now.pods.active() == []
        assert now.pods.find("default", NAME) is None


async def test_removing_a_file_while_devlet_is_down_removes_the_pod_and_its_mirror(
    node: "NodeHarness", site: Site
) -> None:
    async with node.running() as now, node.plugged(now):
        site.write(1)
        mirror = await site.runs()
    site.file.unlink()
    async with node.running() as now:
        await node.gone(NAME)
        assert held(now, mirror) == set()


@pytest.mark.spec("KA-9.3q")
async def test_a_changed_file_is_another_pod_which_gets_the_devices_of_the_old_one(
    node: "NodeHarness", site: Site
) -> None:
    async with node.running() as now, node.plugged(now, 1):
        site.write(1)
        before = await site.runs()
        site.write(1, annotations={"example.com/changed": "yes"})
        after = await site.runs(lambda found: pod_hash(found) != pod_hash(before))
        assert uid(after) != uid(before)
        assert held(now, after) == {"dev-0"} and held(now, before) == set()


@pytest.mark.spec("KA-9.3r")
@pytest.mark.parametrize("options", [DeleteOptions(), DeleteOptions(0)], ids=["with grace", "at once"])
async def test_a_deleted_mirror_is_created_again_and_the_pod_keeps_running(
    node: "NodeHarness", site: Site, options: DeleteOptions
) -> None:
    async with node.running() as now, node.plugged(now):
        site.write(1)
        before = await site.runs()
        await node.store.delete(PODS, NAME, "default", options)
        after = await site.runs(lambda found: uid(found) != uid(before))
        assert pod_hash(after) == pod_hash(before) and held(now, after) == {"dev-0"}
        assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


async def test_a_node_that_is_created_again_gets_its_mirrors_back(node: "NodeHarness", site: Site) -> None:
    site.write()
    async with node.running():
        before = await site.runs()
        node.node_uid = None
        await node.store.delete(NODES, "n1")
        await node.gone(NAME)
        new = await site.register()
        await node.pass_time(31)
        after = await site.runs()
        assert uid(after) != uid(before) and after["metadata"]["ownerReferences"][0]["uid"] == new


async def test_a_foreign_write_to_the_status_of_a_mirror_is_reverted(node: "NodeHarness", site: Site) -> None:
    site.write()
    async with node.running():
        await site.runs()
        patch = StrategicMergePatch({"status": {"phase": "Failed", "message": "no"}})
        await node.store.patch(PODS, NAME, patch, "default", subresource="status")
        after = await site.runs()
        assert "message" not in after["status"]


async def test_a_pod_of_the_same_name_that_is_not_a_mirror_is_left_alone(
    node: "NodeHarness", site: Site, make_pod: MakePod
) -> None:
    other = make_pod(NAME)
    other["spec"]["nodeName"] = "elsewhere"
    theirs = await node.create(other)
    async with node.running() as now, node.plugged(now):
        site.write(1)
        await until(active(now), lambda pods: len(pods) == 1)
        (pod,) = now.pods.active()
        await until(lambda: _held(now, pod.uid), lambda found: found == {"dev-0"})
        assert uid(await node.store.get(PODS, NAME, "default")) == theirs
        await node.store.delete(PODS, NAME, "default", DeleteOptions(0))
        await node.pass_time(31)
        assert pod_hash(await site.runs()) == pod.uid


async def _held(now: "Running", uid: str) -> set[str]:
    return now.held(uid)


async def test_a_mirror_without_a_file_is_deleted(node: "NodeHarness", make_pod: MakePod) -> None:
    document = make_pod("orphan", annotations={MIRROR: "x"})
    async with node.running() as now:
        await node.create(document)
        await node.gone("orphan")
        assert now.pods.active() == []


async def test_an_invalid_file_is_reported_and_the_other_pod_runs(node: "NodeHarness", site: Site) -> None:
    site.write()
    (node.manifests / "bad.yaml").write_text("{kind: Pod}")
    async with node.running():
        await site.runs()
        assert node.reports == ["static pod bad.yaml: not a pod: expected one object with apiVersion: v1 and kind: Pod"]


@pytest.mark.spec("KA-9.3s")
async def test_a_static_pod_waits_for_a_plugin_that_was_never_there(node: "NodeHarness", site: Site) -> None:
    site.write(1)
    del node.allocatable["vendor.com/gpu"]
    async with node.running() as now:
        waiting = await site.mirror(lambda found: bool(found["status"].get("containerStatuses")))
        state = waiting["status"]["containerStatuses"][0]["state"]["waiting"]
        assert state["reason"] == "WaitingForDevicePlugin" and waiting["status"]["phase"] == "Pending"
        node.allocatable["vendor.com/gpu"] = "2"
        async with node.plugged(now):
            assert held(now, await site.runs()) == {"dev-0"}


class Away:
    """A cluster that cannot be reached while `answers` is False."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.answers = True

    def __getattr__(self, name: str) -> Any:
        if not self.answers and name in ("create", "patch", "delete", "get"):
            return self._refuse
        return getattr(self._store, name)

    async def _refuse(self, *arguments: Any, **options: Any) -> Document:
        raise Unavailable("connection refused")


@pytest.mark.spec("KA-9.3t")
async def test_static_pods_start_and_stop_while_the_api_is_unavailable(node: "NodeHarness", site: Site) -> None:
    away: Any = Away(node.store)
    node.cluster = away
    async with node.running() as now, node.plugged(now):
        away.answers = False
        site.write(1)
        await until(active(now), lambda pods: len(pods) == 1)
        (first,) = now.pods.active()
        await until(lambda: _held(now, first.uid), lambda found: found == {"dev-0"})
        site.file.unlink()
        await until(active(now), lambda pods: not pods)
        await until(lambda: _held(now, first.uid), lambda found: not found)
        site.write(1, annotations={"example.com/second": "yes"})
        await until(active(now), lambda pods: len(pods) == 1)
        away.answers = True
        await node.pass_time(31)
        assert pod_hash(await site.runs()) == now.pods.active()[0].uid


async def test_a_static_pod_that_ended_is_not_started_again(node: "NodeHarness", site: Site) -> None:
    async with node.running() as now, node.plugged(now):
        site.write(1, restartPolicy="Never", annotations={"devlet.dev/exit-code": "3"})
        mirror = await site.mirror(lambda found: found["status"].get("phase") == "Failed")
        assert held(now, mirror) == set()
    async with node.running() as now, node.plugged(now):
        after = await site.mirror(lambda found: found["status"].get("phase") == "Failed")
        assert uid(after) == uid(mirror) and now.pods.active() == []


async def test_a_static_pod_runs_whatever_the_taints_of_the_node(node: "NodeHarness", site: Site) -> None:
    node.taints = (Taint(key="broken", effect="NoExecute"),)
    async with node.running():
        site.write()
        await site.runs()
