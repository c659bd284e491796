"""Device taints on one and the same API: what kube-controller-manager makes of them, and what our controller does."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import ListOptions, MergePatch
from devlet.cluster.events import Recorder
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.control.informers import Informers
from devlet.control.taints import TaintController
from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from tests.support.peers.kube_programs import kube_controller_manager

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

OTHERS = "--controllers=garbage-collector,namespace,serviceaccount"  # nobody else evicts, allocates or cleans up
DRIVER = "gpu.example.com"
NAMESPACE = "default"
TOLERATED = {"bare": None, "brief": 2, "spared": 3600, "firm": "for ever", "waiting": None}  # seconds, by pod
DEVICES = {pod: f"d{number}" for number, pod in enumerate(TOLERATED)}
LEAVING = {"bare", "brief"}
GOES, STAYS = "Marking for deletion", "Cancelling deletion"


async def test_both_evict_the_same_pods_and_say_the_same_about_it(peers: "Peers") -> None:
    peers.need("kube-controller-manager")
    reference = await outcome(peers, lambda api, _: theirs(peers, api))
    assert await outcome(peers, lambda _, cluster: ours(cluster)) == reference
    assert reference["leaving"] == LEAVING
    assert reference["events"] == {("bare", GOES), ("brief", GOES), ("spared", STAYS)}


async def outcome(peers: "Peers", controlled: Any) -> dict[str, Any]:
    root = Path(tempfile.mkdtemp(prefix="dv"))
    try:
        async with (
            embedded_api(root, binaries=peers.binaries, control=True, arguments=[OTHERS]) as api,
            connected(kubeconfig.connection([api.kubeconfig]), Settings(qps=0)) as cluster,
        ):
            await prepare(cluster)
            async with controlled(api, cluster):
                return await play(cluster)
    finally:
        shutil.rmtree(root)


def theirs(peers: "Peers", api: EmbeddedApi) -> AbstractAsyncContextManager[object]:
    only = ["device-taint-eviction-controller"]
    return kube_controller_manager(peers.binaries, api.root / "peers", api.kubeconfig, controllers=only)


@asynccontextmanager
async def ours(cluster: RemoteCluster) -> AsyncIterator[None]:
    clock, informers = SystemClock(), Informers(cluster)
    recorder = Recorder(cluster, "device-taint-eviction-controller", "", clock)
    controller = TaintController(cluster, informers, recorder, clock, Registry())
    async with running(recorder.run), informers.running(), running(controller.run):
        yield


async def prepare(cluster: RemoteCluster) -> None:
    spec = {
        "driver": DRIVER,
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n1",
        "devices": [{"name": device} for device in DEVICES.values()],
    }
    await cluster.create(kinds.RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
    for name in TOLERATED:
        await use_device(cluster, name)
    await make_pod(cluster, "stranger", "bare", "n1")


async def use_device(cluster: RemoteCluster, name: str) -> None:
    """A pod, and a claim of the same name that is allocated and reserved for it."""
    pod = await make_pod(cluster, name, name, "" if name == "waiting" else "n1")
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": tolerations(name)}}
    document = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
    await cluster.create(kinds.RESOURCE_CLAIMS, document, NAMESPACE)
    result = {"request": "r", "driver": DRIVER, "pool": "p", "device": DEVICES[name], "tolerations": tolerations(name)}
    user = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
    status = {"status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}}
    await cluster.patch(kinds.RESOURCE_CLAIMS, name, MergePatch(status), NAMESPACE, subresource="status")


def tolerations(name: str) -> list[Document]:
    match TOLERATED[name]:
        case None:
            return []
        case int(seconds):
            return [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]
        case _:
            return [{"operator": "Exists", "effect": "NoExecute"}]


async def make_pod(cluster: RemoteCluster, name: str, claim: str, node: str) -> Document:
    spec: Document = {
        "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        "schedulerName": "nobody",
        **({"nodeName": node} if node else {}),
    }
    return await cluster.create(kinds.PODS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)


async def make_rule(cluster: RemoteCluster, name: str, effect: str, selector: Document | None) -> None:
    chosen = {"deviceSelector": selector} if selector is not None else {}
    spec = {**chosen, "taint": {"key": name, "effect": effect}}
    await cluster.create(kinds.DEVICE_TAINT_RULES, {"metadata": {"name": name}, "spec": spec})


async def play(cluster: RemoteCluster) -> dict[str, Any]:
    """What there is to see in the end, and on the way."""
    await make_rule(cluster, "dry-run", "None", {"pool": "p"})
    await make_rule(cluster, "other", "NoSchedule", {"driver": DRIVER})
    await make_rule(cluster, "idle", "NoExecute", {"pool": "q"})
    await make_rule(cluster, "nothing", "NoExecute", None)
    said = {name: await until(partial(condition, cluster, name)) for name in ("dry-run", "other", "idle", "nothing")}
    await make_rule(cluster, "evict", "NoExecute", {"driver": DRIVER, "pool": "p"})
    await until(partial(leaving, cluster), lambda found: found >= LEAVING)
    said["evict"] = await until(partial(condition, cluster, "evict"), lambda found: "2 pods evicted" in str(found))
    weaker = MergePatch({"spec": {"taint": {"effect": "NoSchedule"}}})
    await cluster.patch(kinds.DEVICE_TAINT_RULES, "evict", weaker)
    events = await until(partial(told, cluster), lambda found: ("spared", STAYS) in found)
    said["later"] = await until(partial(condition, cluster, "evict"), lambda found: "OtherEffect" in str(found))
    return {"said": said, "leaving": await leaving(cluster), "events": events, "marks": await marks(cluster)}


async def condition(cluster: RemoteCluster, rule: str) -> Document | None:
    status = (await cluster.get(kinds.DEVICE_TAINT_RULES, rule)).get("status") or {}
    found = [each for each in status.get("conditions") or () if each["type"] == "EvictionInProgress"]
    return without_time(found[0]) if found else None


async def leaving(cluster: RemoteCluster) -> set[str]:
    pods = (await cluster.list(kinds.PODS, NAMESPACE)).items
    return {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]}


async def told(cluster: RemoteCluster) -> set[tuple[str, str]]:
    about = ListOptions(field_selector="reason=DeviceTaintManagerEviction,type=Normal")
    events = (await cluster.list(kinds.EVENTS, NAMESPACE, about)).items
    return {(event["involvedObject"]["name"], event["message"]) for event in events}


async def marks(cluster: RemoteCluster) -> dict[str, list[Document]]:
    pods = (await cluster.list(kinds.PODS, NAMESPACE)).items
    return {
        pod["metadata"]["name"]: [without_time(each) for each in pod["status"].get("conditions") or ()] for pod in pods
    }


def without_time(condition: Document) -> Document:
    return {key: value for key, value in condition.items() if key != "lastTransitionTime"}
