"""The life of claims on a real API server: what kube-controller-manager makes of it, and what our controller does."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import Cluster, MergePatch
from devlet.cluster.events import Recorder
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.control.claims.controller import ClaimController
from devlet.control.informers import Informers
from devlet.errors import NotFound
from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import EVENTS, NAMESPACES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, SERVICE_ACCOUNTS
from devlet.testing.waiting import until
from tests.support.peers.control_plane import control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

NS = "story"
FINALIZER = "resource.kubernetes.io/delete-protection"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
LONG = "a-pod-with-a-name-that-is-so-long-that-it-has-to-be-cut"


@pytest.mark.spec("DA-6.3")
async def test_both_controllers_tell_the_same_story(peers: "Peers") -> None:
    peers.need("etcd", "kubectl", "kube-apiserver", "kube-controller-manager")
    theirs = await story(peers, ours=False)
    assert await story(peers, ours=True) == theirs
    assert theirs["claims"].keys() == {"train-gpu-", "train-nic-"} and theirs["left"] == {"shared": ({}, [])}


async def story(peers: "Peers", *, ours: bool) -> dict[str, Any]:
    root = Path(tempfile.mkdtemp(prefix="dv"))
    try:
        async with (
            control_plane(peers.binaries, root, controller_manager=not ours, fsync=False) as api,
            connected(kubeconfig.connection([api.kubeconfig]), Settings(qps=0)) as cluster,
            controlled(cluster, ours=ours),
        ):
            return await Story(cluster).told(ours=ours)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@asynccontextmanager
async def controlled(cluster: Cluster, *, ours: bool) -> AsyncIterator[None]:
    if not ours:
        yield
        return
    clock = SystemClock()
    recorder = Recorder(cluster, "resource_claim", "here", clock)
    informers = Informers(cluster)
    async with informers.running(), running(recorder.run):
        async with running(ClaimController(cluster, informers, recorder, clock, Registry()).run):
            yield


class Story:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.seen: dict[str, Any] = {}

    async def told(self, *, ours: bool) -> dict[str, Any]:
        await self.cluster.create(NAMESPACES, {"metadata": {"name": NS}})
        if not ours:
            await until(self.service_account)
        for part in (self.claims_are_made, self.names_are_cut, self.a_template_is_missing, self.shared, self.the_end):
            await part()
        return self.seen

    async def claims_are_made(self) -> None:
        inner = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": SPEC}
        await self.cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "t"}, "spec": inner}, NS)
        await self.pod("train", gpu="t", nic="t")
        pod = await until(lambda: self.cluster.get(PODS, "train", NS), lambda pod: len(recorded(pod)) == 2)
        claims = [await self.cluster.get(RESOURCE_CLAIMS, name, NS) for name in recorded(pod).values()]
        self.seen["claims"] = {claim["metadata"]["generateName"]: shown(claim) for claim in claims}
        self.seen["managed"] = [
            (entry["operation"], entry["subresource"], sorted(entry["fieldsV1"]["f:status"]["f:resourceClaimStatuses"]))
            for entry in pod["metadata"]["managedFields"]
            if entry["manager"] == "ResourceClaimController"
        ]

    async def names_are_cut(self) -> None:
        await self.pod(LONG, gpu="t")
        pod = await until(lambda: self.cluster.get(PODS, LONG, NS), is_recorded)
        claim = await self.cluster.get(RESOURCE_CLAIMS, recorded(pod)["gpu"], NS)
        self.seen["cut"] = claim["metadata"]["generateName"], len(claim["metadata"]["name"])

    async def a_template_is_missing(self) -> None:
        await self.pod("waits", gpu="later")
        events = await until(self.events)
        self.seen["events"] = sorted({(e["type"], e["reason"], e["message"]) for e in events})
        await self.cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "later"}, "spec": {"spec": SPEC}}, NS)
        await until(lambda: self.cluster.get(PODS, "waits", NS), is_recorded)

    async def shared(self) -> None:
        """One consumer put there, as by a scheduler; the other one has a node from the start."""
        await self.cluster.create(
            RESOURCE_CLAIMS, {"metadata": {"name": "shared", "finalizers": [FINALIZER]}, "spec": SPEC}, NS
        )
        first = await self.pod("first", "n1", gpu=":shared")
        consumer = {"resource": "pods", "name": "first", "uid": first["metadata"]["uid"]}
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "d"}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
        await self.cluster.patch(RESOURCE_CLAIMS, "shared", MergePatch({"status": status}), NS, subresource="status")
        await self.pod("second", "n1", gpu=":shared")
        await self.consumers_are("first", "second")
        await self.finish("first")
        await self.consumers_are("second")
        assert "allocation" in (await self.cluster.get(RESOURCE_CLAIMS, "shared", NS))["status"]
        await self.finish("second")
        await self.consumers_are()

    async def the_end(self) -> None:
        for name in ("train", LONG, "waits"):
            await self.finish(name)

        async def left() -> dict[str, Any]:
            claims = (await self.cluster.list(RESOURCE_CLAIMS, NS)).items
            return {c["metadata"]["name"]: (c.get("status", {}), c["metadata"].get("finalizers", [])) for c in claims}

        self.seen["left"] = await until(left, lambda claims: claims == {"shared": ({}, [])})

    async def consumers_are(self, *names: str) -> None:
        def are(claim: Document) -> bool:
            return {c["name"] for c in claim.get("status", {}).get("reservedFor", [])} == set(names)

        await until(lambda: self.cluster.get(RESOURCE_CLAIMS, "shared", NS), are)

    async def finish(self, name: str) -> None:
        patch = MergePatch({"status": {"phase": "Succeeded"}})
        await self.cluster.patch(PODS, name, patch, NS, subresource="status")

    async def events(self) -> list[Document]:
        return [e for e in (await self.cluster.list(EVENTS, NS)).items if e["involvedObject"]["name"] == "waits"]

    async def service_account(self) -> Document | None:
        try:
            return await self.cluster.get(SERVICE_ACCOUNTS, "default", NS)
        except NotFound:
            return None

    async def pod(self, name: str, node: str = "", **entries: str) -> Document:
        container = {"name": "main", "image": "x", "resources": {"claims": [{"name": entry} for entry in entries]}}
        spec = {"containers": [container], "resourceClaims": [{"name": e, **source(of)} for e, of in entries.items()]}
        return await self.cluster.create(
            PODS, {"metadata": {"name": name}, "spec": spec | ({"nodeName": node} if node else {})}, NS
        )


def source(of: str) -> Document:
    return {"resourceClaimName": of[1:]} if of.startswith(":") else {"resourceClaimTemplateName": of}


def recorded(pod: Document) -> dict[str, str]:
    return {s["name"]: s["resourceClaimName"] for s in pod["status"].get("resourceClaimStatuses", [])}


def is_recorded(pod: Document) -> bool:
    return bool(recorded(pod))


def shown(claim: Document) -> Document:
    """What does not differ each time. That ours are born with the finalizer is meant to differ."""
    metadata = claim["metadata"]
    owners = [{k: v for k, v in owner.items() if k != "uid"} for owner in metadata["ownerReferences"]]
    return {
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "owners": owners,
        "spec": claim["spec"],
    }
