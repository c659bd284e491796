"""The cost of the writes that schedule one pod whose claim comes from a template. Prints one line of JSON.

`python -m bench._writes --directory D` calls a fresh store in this process, as the control loops do, and counts
processor time: that of the checks, and of the thread that makes the writes durable. 64 pods are in progress at a
time.
"""

import argparse
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import anyio
from bench._embedded import tune_gc

from devlet.cluster.client import ApplyPatch, MergePatch, StrategicMergePatch, WriteOptions
from devlet.cluster.store.store import Store, open_store
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS

AT_A_TIME = 64
PODS_PER_ROUND = 100
NAMESPACE = "default"

Write = Callable[[int], Awaitable[object]]


class Writes:
    """The writes of one pod, in order; each is for the pod with that number."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pods: dict[int, Document] = {}
        self._claims: dict[int, Document] = {}

    async def create_pod(self, number: int) -> None:
        self._pods[number] = await self._store.create(PODS, pod(number), NAMESPACE)

    async def create_claim(self, number: int) -> None:
        self._claims[number] = await self._store.create(RESOURCE_CLAIMS, claim(self._pods[number]), NAMESPACE)

    async def apply_pod_status(self, number: int) -> None:
        """Record which claim was made, as the reference's claim controller does."""
        wanted = {"apiVersion": "v1", "kind": "Pod", **self._claim_status(number, name=f"p{number}")}
        options = WriteOptions(field_manager="ResourceClaimController")
        patch = ApplyPatch(wanted, force=True)
        await self._store.patch(PODS, f"p{number}", patch, NAMESPACE, subresource="status", options=options)

    async def patch_pod_status(self, number: int) -> None:
        """Write the same with a strategic merge patch, under another field manager."""
        change = self._claim_status(number)
        change["status"]["conditions"] = [{"type": "ClaimsMade", "status": "True"}]
        await self._store.patch(PODS, f"p{number}", StrategicMergePatch(change), NAMESPACE, subresource="status")

    async def patch_claim_status(self, number: int) -> None:
        metadata = self._claims[number]["metadata"]
        guards = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        patch = MergePatch({"metadata": guards, "status": allocated(self._pods[number], number)})
        await self._store.patch(RESOURCE_CLAIMS, metadata["name"], patch, NAMESPACE, subresource="status")

    async def bind_pod(self, number: int) -> None:
        name, target = f"p{number}", {"kind": "Node", "name": "n1"}
        binding = {"metadata": {"name": name}, "target": target}
        await self._store.create(PODS, binding, NAMESPACE, name=name, subresource="binding")

    def _claim_status(self, number: int, **metadata: str) -> Document:
        made = {"name": "r", "resourceClaimName": self._claims[number]["metadata"]["name"]}
        uid = self._pods[number]["metadata"]["uid"]
        return {"metadata": {"uid": uid, **metadata}, "status": {"resourceClaimStatuses": [made]}}

    @property
    def all(self) -> dict[str, Write]:
        return {
            "create a pod": self.create_pod,
            "create its claim": self.create_claim,
            "apply the pod's status": self.apply_pod_status,
            "patch the pod's status": self.patch_pod_status,
            "patch the claim's status": self.patch_claim_status,
            "bind the pod": self.bind_pod,
        }


def pod(number: int) -> Document:
    container = {"name": "c", "image": "x", "resources": {"claims": [{"name": "r"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"}, "spec": spec}


def claim(for_pod: Document) -> Document:
    name, uid = for_pod["metadata"]["name"], for_pod["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    metadata = {
        "generateName": f"{name}-r-",
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "annotations": {"resource.kubernetes.io/pod-claim-name": "r"},
        "ownerReferences": [owner],
    }
    request = {"name": "req-0", "exactly": {"deviceClassName": "c"}}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    return {**kind, "metadata": metadata, "spec": {"devices": {"requests": [request]}}}


def allocated(for_pod: Document, number: int) -> Document:
    result = {"request": "req-0", "driver": "d.example.com", "pool": "n1", "device": f"d{number}"}
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    consumer = {"resource": "pods", "name": for_pod["metadata"]["name"], "uid": for_pod["metadata"]["uid"]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [here]}}
    return {"allocation": allocation, "reservedFor": [consumer]}


async def measure(store: Store, rounds: int) -> dict[str, dict[str, float]]:
    """Return milliseconds per write: the median of the rounds, and the minimum, which other programs disturb least."""
    took: dict[str, list[float]] = {}
    writes = Writes(store).all
    for i in range(rounds):
        numbers = range(i * PODS_PER_ROUND, (i + 1) * PODS_PER_ROUND)
        for name, write in writes.items():
            took.setdefault(name, []).append(await _timed(write, numbers))
    return {name: {"median": statistics.median(figures), "least": min(figures)} for name, figures in took.items()}


async def _timed(write: Write, numbers: Iterable[int]) -> float:
    limit = anyio.CapacityLimiter(AT_A_TIME)

    async def one(number: int) -> None:
        async with limit:
            await write(number)

    start = time.process_time()
    async with anyio.create_task_group() as tasks:
        for number in numbers:
            tasks.start_soon(one, number)
    return (time.process_time() - start) * 1000 / PODS_PER_ROUND


async def run(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    options.directory.mkdir(parents=True, exist_ok=True)
    async with open_store(options.directory / "store.db") as store:
        tune_gc()
        return await measure(store, options.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=20)
    print(json.dumps(anyio.run(run, parser.parse_args(), backend_options={"use_uvloop": True})))


if __name__ == "__main__":
    main()
